"""What a simulation answers, with the half-width of a 95% interval beside each number."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .state import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A time's mean and percentiles, each with a 95% half-width.

    Parameters
    ----------
    mean, p50, p90, p99 : float
        Mean and percentiles over turns [s].
    half_widths : dict of str to float
        Half-width of the 95% interval of each [s].
    """

    mean: float
    p50: float
    p90: float
    p99: float
    half_widths: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRates:
    """Token-weighted shares of prompt tokens.

    Parameters
    ----------
    hbm, offload, overall : float
        Found in GPU memory, loaded from the second tier, and both [1].
    theoretical : float
        What an infinite cache finds on the same turns [1].
    reusable : float
        Share found of the private tokens that an infinite cache finds [1].
    """

    hbm: float
    offload: float
    overall: float
    theoretical: float
    reusable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """What the sessions were doing, averaged over time.

    Parameters
    ----------
    thinking, waiting, loading, prefilling, decoding, delegating : float
        Mean number of sessions (sub-agents counted on their own) in each phase; a session that
        waits for its sub-agents is delegating [1].
    live_tokens_over_budget : float
        Mean of the live private contexts over the private KV budget [1].
    over_budget_share : float
        Share of time in which they exceed it [1].
    pinned_share : float
        Mean share of the budget held by running requests [1].
    histogram : tuple of float
        Share of time by bins of 0.02 of live tokens over budget, from 0; the last bin is open [1].
    """

    thinking: float
    waiting: float
    loading: float
    prefilling: float
    decoding: float
    delegating: float
    live_tokens_over_budget: float
    over_budget_share: float
    pinned_share: float
    histogram: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassResult:
    """One class of sessions; sub-agents come after the sessions' classes.

    Parameters
    ----------
    number : int
        Place of the class in the case [1].
    requests_per_s : float
        Turns of the class [1/s].
    prompt_tokens_mean : float
        Mean prompt, shared prefix included [tokens].
    hit_rate, reusable : float
        Token-weighted hits over prompts, and private hits over what an infinite cache finds [1].
    ttft_mean_s : float
        Mean time to the first token [s].
    """

    number: int
    requests_per_s: float
    prompt_tokens_mean: float
    hit_rate: float
    reusable: float
    ttft_mean_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Benchmark windows: what runs of `seconds` would have shown.

    Parameters
    ----------
    seconds : float
        Length of a window [s].
    output_tokens_per_s, requests_per_s, hit_rate : tuple of float
        One value per whole window, seeds one after the other.
    """

    seconds: float
    output_tokens_per_s: tuple[float, ...]
    requests_per_s: tuple[float, ...]
    hit_rate: tuple[float, ...]

    def percentiles(self, name: str = "output_tokens_per_s") -> dict[str, float] | None:
        """Return p5, p50 and p95 over windows; None where no window was complete."""
        values = getattr(self, name)
        if not values:
            return None
        low, middle, high = np.percentile(values, [5, 50, 95])
        return {"p5": float(low), "p50": float(middle), "p95": float(high)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """Outcome of a simulation.

    Parameters
    ----------
    name : str
        Label of the case.
    concurrency, seeds, turns : int
        Live sessions, independent runs, and turns counted in all [1].
    complete : bool
        False where the time limit cut the run short.
    simulated_s, wall_s : float
        Simulated and real time [s].
    requests_per_s, output_tokens_per_s, input_tokens_per_s : float
        Turns and tokens per second [1/s], [tokens/s].
    hit_rate : HitRates
        Token-weighted hit rates [1].
    ttft_s, tpot_s, e2e_s : Summary
        From arrival to the first token, per output token after it, from arrival to the last [s].
    utilization, prefill_utilization : float
        Share of time in which a step, and a step with prefill in it, ran [1].
    preemptions, sessions_turned_away : int
        Preemptions of running requests; sessions of an open stream that found no slot [1].
    composition : Composition
        Time-weighted picture.
    windows : Windows
        Benchmark windows.
    by_class : tuple of ClassResult
        The classes of sessions, then their sub-agents.
    half_widths : dict of str to float
        95% half-widths of the plain numbers, by dotted name.
    """

    name: str
    concurrency: int
    seeds: int
    turns: int
    complete: bool
    simulated_s: float
    wall_s: float
    requests_per_s: float
    output_tokens_per_s: float
    input_tokens_per_s: float
    hit_rate: HitRates
    ttft_s: Summary
    tpot_s: Summary
    e2e_s: Summary
    utilization: float
    prefill_utilization: float
    preemptions: int
    sessions_turned_away: int
    composition: Composition
    windows: Windows
    by_class: tuple[ClassResult, ...]
    half_widths: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; what is not known is null."""
        return {key: _plain(value) for key, value in asdict(self).items()}

    def __str__(self) -> str:
        width = self.half_widths
        return (
            f"{self.name}: {self.concurrency} sessions, {self.turns} turns\n"
            f"  {self.requests_per_s:.4g} ± {width['requests_per_s']:.2g} turns/s, "
            f"{self.output_tokens_per_s:.4g} output tokens/s, "
            f"busy {self.utilization:.0%}\n"
            f"  hits {self.hit_rate.overall:.3f} ± {width['hit_rate.overall']:.2g} "
            f"(ceiling {self.hit_rate.theoretical:.3f}), TTFT mean {self.ttft_s.mean:.3g} s, "
            f"p50 {self.ttft_s.p50:.3g}, p90 {self.ttft_s.p90:.3g}, p99 {self.ttft_s.p99:.3g}"
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def student_quantile(degrees: int) -> float:
    """0.975 quantile of Student's law, by the expansion of Cornish and Fisher [1]."""
    z = 1.959963984540054
    if degrees < 1:
        return math.inf
    first = (z**3 + z) / 4.0
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96.0
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384.0
    return z + first / degrees + second / degrees**2 + third / degrees**3


def ratio_half_width(numerators: FloatArray, denominators: FloatArray) -> float:
    """95% half-width of a ratio of sums from its batches, linearised."""
    count = numerators.size
    mean = denominators.mean() if count else 0.0
    if count < 2 or mean == 0.0:
        return math.inf
    rest = numerators - numerators.sum() / denominators.sum() * denominators
    error = math.sqrt(float((rest**2).sum()) / (count * (count - 1))) / float(mean)
    return student_quantile(count - 1) * error


def mean_half_width(values: FloatArray) -> float:
    """95% half-width of a mean from independent batches."""
    return ratio_half_width(values, np.ones_like(values))
