"""Two scrapes of an engine's /metrics: rates, hits, latencies and the pool between them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import IngestError
from .observation import Observation

_SAMPLE = re.compile(
    r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+([-+0-9.eE]+|NaN|[+-]?Inf)(?:\s+(\d+))?\s*$"
)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """One exposition.

    Parameters
    ----------
    samples : dict of str to dict of labels to float
        Values by metric and labels.
    stamp_s : float or None
        Time of the scrape, where samples carry one [s].
    source : str
        File.
    """

    samples: dict[str, dict[Labels, float]]
    stamp_s: float | None
    source: str

    def total(self, *names: str) -> float | None:
        """Sum over labels of the first of these metrics that is there."""
        for name in names:
            for variant in (name, f"{name}_total"):
                if variant in self.samples:
                    return sum(self.samples[variant].values())
        return None

    def label(self, metric: str, name: str) -> str | None:
        """A label of an information metric."""
        for labels in self.samples.get(metric, {}):
            found = dict(labels).get(name)
            if found is not None:
                return found
        return None

    @property
    def engine(self) -> str:
        """``vllm`` or ``sglang``."""
        for engine in ("vllm", "sglang"):
            if any(name.startswith(f"{engine}:") for name in self.samples):
                return engine
        raise IngestError("holds no vllm: or sglang: metrics.", file=self.source)


def read_scrape(path: Path) -> Scrape:
    """Return the samples of a Prometheus text exposition.

    Raises
    ------
    IngestError
        With file and line, where a line is not a sample.
    """
    samples: dict[str, dict[Labels, float]] = defaultdict(dict)
    stamp: float | None = None
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise IngestError(f"cannot be read: {error}", file=str(path)) from error
    for at, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SAMPLE.match(line)
        if match is None:
            raise IngestError("is not a metrics sample.", file=str(path), line=at)
        name, labels, value, milliseconds = match.groups()
        key = tuple(sorted(_LABEL.findall(labels or "")))
        samples[name][key] = float(value)
        stamp = float(milliseconds) / 1000.0 if milliseconds else stamp
    return Scrape(samples=dict(samples), stamp_s=stamp, source=str(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What happened between two scrapes.

    Parameters
    ----------
    engine : str
        Engine.
    seconds : float
        Length [s].
    requests_per_s, prompt_tokens_per_s, output_tokens_per_s : float
        Rates; prompts count cached tokens [requests/s], [tokens/s].
    hit_rate_hbm, hit_rate_tier : float or None
        Shares of prompt tokens found [1].
    ttft_mean_s, tpot_mean_s : float or None
        Means over the window [s].
    running, waiting : float
        Requests at the second scrape [1].
    pool_tokens : float or None
        KV tokens of the engine [tokens].
    pool_used : float or None
        Share of the pool in use by running requests [1].
    idle_before_evict_s : float or None
        Mean time a block lay untouched before it was evicted: the characteristic time [s].
    source : str
        Files.
    """

    engine: str
    seconds: float
    requests_per_s: float
    prompt_tokens_per_s: float
    output_tokens_per_s: float
    hit_rate_hbm: float | None
    hit_rate_tier: float | None
    ttft_mean_s: float | None
    tpot_mean_s: float | None
    running: float
    waiting: float
    pool_tokens: float | None
    pool_used: float | None
    idle_before_evict_s: float | None
    source: str

    @property
    def hit_rate(self) -> float | None:
        """Share of prompt tokens found in any tier [1]."""
        if self.hit_rate_hbm is None:
            return None
        return self.hit_rate_hbm + (self.hit_rate_tier or 0.0)

    def observation(self, concurrency: int) -> Observation:
        """Return the window as a load point of `concurrency` live sessions."""
        figures = {
            "requests_per_s": self.requests_per_s,
            "output_tokens_per_s": self.output_tokens_per_s,
            "ttft_mean_s": self.ttft_mean_s,
            "tpot_mean_s": self.tpot_mean_s,
            "hit_rate": self.hit_rate,
        }
        measured = {name: value for name, value in figures.items() if value is not None}
        return Observation(
            concurrency=concurrency,
            measured=measured,
            identity={"engine": self.engine},
            source=self.source,
        )


def window(before: Scrape, after: Scrape, seconds: float | None = None) -> Window:
    """Return what happened between two scrapes of one engine.

    Parameters
    ----------
    before, after : Scrape
        In this order.
    seconds : float, optional
        Time between them, where the samples carry no time [s].

    Raises
    ------
    IngestError
        If counters fell (a restart, or the wrong order), or the time is not known.
    """
    engine = after.engine
    source = f"{before.source}, {after.source}"
    if before.engine != engine:
        raise IngestError(f"mixed engines: {before.engine} and {engine}.", file=source)
    if seconds is None and before.stamp_s is not None and after.stamp_s is not None:
        seconds = after.stamp_s - before.stamp_s
    if seconds is None or seconds <= 0:
        raise IngestError("the time between the scrapes is not known; give --seconds.", file=source)
    span = float(seconds)

    def rise(*names: str) -> float | None:
        low, high = before.total(*names), after.total(*names)
        if low is None or high is None:
            return None
        if high < low:
            raise IngestError(
                f"{names[0]} fell from {low:g} to {high:g}: a restart, or the scrapes are swapped.",
                file=source,
            )
        return high - low

    def mean(*names: str) -> float | None:
        for name in names:
            total, count = rise(f"{name}_sum"), rise(f"{name}_count")
            if total is not None and count:
                return total / count
        return None

    e = engine
    prompts, outputs = rise(f"{e}:prompt_tokens"), rise(f"{e}:generation_tokens")
    requests = rise(
        f"{e}:request_success", f"{e}:num_requests", f"{e}:e2e_request_latency_seconds_count"
    )
    if prompts is None or outputs is None or requests is None:
        raise IngestError("lacks the counters of prompt and generated tokens.", file=source)
    if requests == 0:
        raise IngestError("no request ended between the scrapes.", file=source)
    hbm, tier = _hits(e, rise, prompts, after)
    return Window(
        engine=e,
        seconds=span,
        requests_per_s=requests / span,
        prompt_tokens_per_s=prompts / span,
        output_tokens_per_s=outputs / span,
        hit_rate_hbm=hbm,
        hit_rate_tier=tier,
        ttft_mean_s=mean(f"{e}:time_to_first_token_seconds"),
        tpot_mean_s=mean(f"{e}:inter_token_latency_seconds", f"{e}:time_per_output_token_seconds"),
        running=after.total(f"{e}:num_requests_running", f"{e}:num_running_reqs") or 0.0,
        waiting=after.total(f"{e}:num_requests_waiting", f"{e}:num_queue_reqs") or 0.0,
        pool_tokens=_pool(after),
        pool_used=after.total(
            f"{e}:kv_cache_usage_perc", f"{e}:gpu_cache_usage_perc", f"{e}:token_usage"
        ),
        idle_before_evict_s=mean(f"{e}:kv_block_idle_before_evict_seconds"),
        source=source,
    )


def _hits(
    engine: str, rise: Callable[..., float | None], prompts: float, after: Scrape
) -> tuple[float | None, float | None]:
    asked = rise(f"{engine}:prefix_cache_queries", f"{engine}:gpu_prefix_cache_queries")
    found = rise(f"{engine}:prefix_cache_hits", f"{engine}:gpu_prefix_cache_hits")
    external = rise(f"{engine}:external_prefix_cache_hits")
    if asked and found is not None:
        return found / asked, None if external is None else external / asked
    cached = rise(f"{engine}:cached_tokens")
    if cached is not None and prompts:
        return cached / prompts, None
    return after.total(f"{engine}:cache_hit_rate"), None


def _pool(scrape: Scrape) -> float | None:
    stated = scrape.total("sglang:max_total_num_tokens")
    if stated is not None:
        return stated
    blocks = scrape.label("vllm:cache_config_info", "num_gpu_blocks")
    size = scrape.label("vllm:cache_config_info", "block_size")
    try:
        return float(blocks) * float(size) if blocks and size else None
    except ValueError:
        return None
