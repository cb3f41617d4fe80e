"""The cheapest concurrency of one replica, by complete enumeration with proved ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..answer import BEFORE_CLIFF, estimate
from ..errors import InfeasibleError, SpecError
from ..network.latency import Latency
from ..pipeline import Run, run
from ..report.engine_flags import engine_flags
from ..results import Estimate
from ..scenario import ResolvedScenario, Scenario
from .slo import Slo, parse_slos

LARGEST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One evaluated concurrency: cost per token, hits, and the bounds it breaks."""

    concurrency: int
    usd_per_mtok: float
    output_tokens_per_s: float
    hit_share: float
    interactivity_p50: float
    broken: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the row of a frontier."""
        return {
            "concurrency": self.concurrency,
            "usd_per_mtok": self.usd_per_mtok,
            "output_tokens_per_s": self.output_tokens_per_s,
            "hit_share": self.hit_share,
            "interactivity_tokens_per_s_p50": self.interactivity_p50,
            "broken": list(self.broken),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cheapest plan and the evidence for it.

    Parameters
    ----------
    best : Estimate
        The chosen operating point.
    candidates : tuple of Candidate
        Every concurrency that was evaluated, in order.
    lower_bound_usd_per_mtok : float
        No allowed concurrency costs less [USD per 1e6 tokens].
    binding : str
        What keeps the next better point out.
    method : str
        How the bound was proved.
    """

    best: Estimate
    candidates: tuple[Candidate, ...]
    lower_bound_usd_per_mtok: float
    binding: str
    method: str

    @property
    def objective_usd_per_mtok(self) -> float:
        """Cost of the plan on all tokens [USD per 1e6 tokens]."""
        return self._candidate(self.best.concurrency).usd_per_mtok

    @property
    def runner_up(self) -> Candidate | None:
        """The next cheapest allowed concurrency."""
        allowed = [
            row
            for row in self.candidates
            if not row.broken and row.concurrency != self.best.concurrency
        ]
        return min(allowed, key=lambda row: row.usd_per_mtok, default=None)

    def _candidate(self, concurrency: int) -> Candidate:
        return next(row for row in self.candidates if row.concurrency == concurrency)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        scenario = self.best.run.scenario
        offload = scenario.deployment.offload
        objective = self.objective_usd_per_mtok
        tier = self.best.tier_tokens
        hbm = self.best.run.budget.usable_kv_tokens
        runner_up, case = self.runner_up, self.best.nearest
        return {
            "feasible": True,
            "best": {
                "concurrency": self.best.concurrency,
                "session_cap": self.best.session_cap,
                "running_limit": self.best.running_limit,
                "offload_bytes": 0.0 if offload is None else offload.bytes,
                "offload_fraction": tier / (tier + hbm),
                "replicas": 1,
                "nodes": scenario.node.nodes,
                "node": scenario.node.name,
                "speculation": None
                if scenario.deployment.speculation is None
                else scenario.deployment.speculation.draft_tokens,
                "estimate": self.best.to_dict(),
            },
            "objective_usd_per_mtok": objective,
            "runner_up": None if runner_up is None else runner_up.to_dict(),
            "model_error": None if case is None else case.relative_error,
            "certificate": {
                "lower_bound_usd_per_mtok": self.lower_bound_usd_per_mtok,
                "relative_gap": objective / self.lower_bound_usd_per_mtok - 1.0,
                "method": self.method,
                "evaluated": len(self.candidates),
            },
            "frontier": [row.to_dict() for row in self.candidates if not row.broken],
            "binding": self.binding,
            "shadow_prices": {},
            "engine_flags": engine_flags(self.best),
        }

    def __str__(self) -> str:
        runner_up = self.runner_up
        regret = (
            "no other concurrency is allowed"
            if runner_up is None
            else f"runner-up C = {runner_up.concurrency} at "
            f"{runner_up.usd_per_mtok / self.objective_usd_per_mtok - 1:+.1%}"
        )
        return (
            f"CHEAPEST  C = {self.best.concurrency} at ${self.objective_usd_per_mtok:.4f} per M "
            f"tokens; {regret}\n"
            f"proof     {self.method}; gap "
            f"{self.objective_usd_per_mtok / self.lower_bound_usd_per_mtok - 1:.2%} of "
            f"{len(self.candidates)} evaluated\n"
            f"limits    {self.binding}\n{self.best}\n"
            f"flags     {engine_flags(self.best)['command']}"
        )


def optimize(
    scenario: Scenario | ResolvedScenario,
    *,
    slo: Sequence[str] | dict[str, float] = (),
    level: str = "fast",
    allow_past_cliff: bool = False,
) -> Plan:
    """Return the concurrency of least cost per token that keeps its cache and meets the SLOs.

    Parameters
    ----------
    scenario : Scenario
        What is given; offload and layout are taken as they are.
    slo : sequence of str, or dict
        ``["ttft_p90=5"]`` or ``{"ttft_p90_s": 5}``; seconds, interactivity in tokens/s.
    level : {"closed", "fast", "exact"}
        Queue model.
    allow_past_cliff : bool
        True to let the plan lose more than a tenth of the theoretical hits.

    Raises
    ------
    InfeasibleError
        If no concurrency meets every bound; names the bound that binds at one session.

    Notes
    -----
    Hits fall and latencies rise with concurrency (checked on the evaluated points), so the allowed
    set is an initial stretch 1..C; it is enumerated whole, and the gap is zero for the level used.
    """
    resolved = scenario.resolve() if isinstance(scenario, Scenario) else scenario
    texts = [f"{k}={v}" for k, v in slo.items()] if isinstance(slo, dict) else list(slo)
    slos = parse_slos(texts)
    if resolved.gpu_hour_usd is None:
        raise SpecError(
            f"no GPU-hour price for {resolved.node.accelerator.name}; give --gpu-hour-usd.",
            field="gpu_hour_usd",
        )
    rows: list[Candidate] = []
    limit = min(LARGEST, run(resolved, concurrency=1, level=level).law.max_sequences)
    for concurrency in range(1, limit + 1):
        solved = run(resolved, concurrency=concurrency, level=level)
        rows.append(_candidate(solved, slos, allow_past_cliff))
        if rows[-1].broken:
            break
    allowed = [row for row in rows if not row.broken]
    if not allowed:
        raise InfeasibleError(
            f"no concurrency meets {', '.join(rows[0].broken)}; one session already breaks it.",
            details={"binding": list(rows[0].broken)},
        )
    _check_monotone(rows)
    best = min(allowed, key=lambda row: row.usd_per_mtok)
    ended = rows[-1].broken
    binding = (
        f"C = {rows[-1].concurrency} breaks {', '.join(ended)}"
        if ended
        else f"the engine runs at most {limit} sequences"
    )
    return Plan(
        best=estimate(resolved, best.concurrency, level=level),
        candidates=tuple(rows),
        lower_bound_usd_per_mtok=best.usd_per_mtok,
        binding=binding,
        method=(
            f"complete enumeration of C = 1..{allowed[-1].concurrency} at level {level}; hits fall "
            "with C on every evaluated point, so larger C stay out"
        ),
    )


def _candidate(solved: Run, slos: tuple[Slo, ...], allow_past_cliff: bool) -> Candidate:
    latency: Latency = solved.latency()
    ceiling = solved.scenario.workload.theoretical_hit_rate
    share = solved.point.headline.hit_rate / ceiling if ceiling > 0 else 1.0
    broken = [f"{s.key} = {s.value(latency):.3g} (limit {s.limit:g})" for s in slos
              if not s.met(latency)]  # fmt: skip
    if share < BEFORE_CLIFF and not allow_past_cliff:
        broken.append(f"hits at {share:.0%} of their ceiling (limit {BEFORE_CLIFF:.0%})")
    cost = solved.cost.usd_per_mtok_total
    assert cost is not None  # the price was checked before the enumeration
    return Candidate(
        concurrency=solved.concurrency,
        usd_per_mtok=cost,
        output_tokens_per_s=solved.output_tokens_per_s,
        hit_share=share,
        interactivity_p50=1.0 / latency.tpot_s.p50,
        broken=tuple(broken),
    )


def _check_monotone(rows: Sequence[Candidate]) -> None:
    for before, after in zip(rows, rows[1:], strict=False):
        if after.hit_share > before.hit_share * (1.0 + 1e-3):
            raise InfeasibleError(
                f"the certificate needs hits that fall with C, but they rise from "
                f"{before.hit_share:.4f} to {after.hit_share:.4f} at C = {after.concurrency}."
            )
