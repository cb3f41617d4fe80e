"""Results: frozen answers with the contract's names, a text for people and rows for programs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .answer_parts import Cliff as Cliff
from .answer_parts import HitRate as HitRate
from .answer_parts import NearestCase as NearestCase
from .answer_parts import WorkingSetEnd as WorkingSetEnd
from .errors import MissingExtraError
from .network.benchmark_hour import BenchmarkHour
from .network.latency import Latency

if TYPE_CHECKING:
    from .pipeline import Run
    from .report.explain import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One operating point with everything an answer needs.

    Parameters
    ----------
    run : Run
        The solved stages.
    hit_rate : HitRate
        By tier [1].
    latency : Latency
        Percentiles [s].
    hour : BenchmarkHour
        Scatter of one-hour runs.
    cliff : Cliff
        Where hits are lost.
    session_cap : int or None
        Live sessions that stay clear of the cliff [1].
    running_limit : int
        Requests the engine should run at once [1].
    bottleneck : str
        What binds.
    intervals : dict of str to (low, high)
        By dotted name.
    spread_shares : dict of str to float
        Share of the interval that each uncertain input explains [1].
    working_set_ends : tuple of WorkingSetEnd
        The same point at both ends of the working set's evidence.
    nearest : NearestCase or None
        Measured case.
    warnings : tuple of str
        Where the model is outside its range.
    """

    run: Run
    hit_rate: HitRate
    latency: Latency
    hour: BenchmarkHour
    cliff: Cliff
    session_cap: int | None
    running_limit: int
    bottleneck: str
    utilization: float
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    spread_shares: dict[str, float] = field(default_factory=dict)
    working_set_ends: tuple[WorkingSetEnd, ...] = ()
    nearest: NearestCase | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_run(
        cls,
        run: Run,
        *,
        cliff: Cliff,
        session_cap: int | None,
        intervals: dict[str, tuple[float, float]],
        spread_shares: dict[str, float],
        working_set_ends: tuple[WorkingSetEnd, ...],
        nearest: NearestCase | None,
    ) -> Estimate:
        """Return the estimate of a solved run."""
        state = run.point.headline
        return cls(
            run=run,
            hit_rate=HitRate(
                hbm=state.hit_rate_hbm,
                offload=state.hit_rate_offload,
                theoretical=run.scenario.workload.theoretical_hit_rate,
            ),
            latency=run.latency(),
            hour=run.benchmark_hour(),
            cliff=cliff,
            session_cap=session_cap,
            running_limit=max(math.floor(run.point.running_limit) * run.ranks, 1),
            bottleneck=_bottleneck(run),
            utilization=_utilization(run),
            intervals=intervals,
            spread_shares=spread_shares,
            working_set_ends=working_set_ends,
            nearest=nearest,
            warnings=(*run.budget.warnings, *_warnings(run)),
        )

    @property
    def concurrency(self) -> int:
        """Live sessions [1]."""
        return self.run.concurrency

    @property
    def stable(self) -> bool:
        """True where the headline state is the only one."""
        return not self.run.point.several

    @property
    def requests_per_s(self) -> float:
        """Model requests, long-run mean [requests/s]."""
        return self.run.requests_per_s

    @property
    def output_tokens_per_s(self) -> float:
        """Output, long-run mean [tokens/s]."""
        return self.run.output_tokens_per_s

    @property
    def input_tokens_per_s(self) -> float:
        """Prompt tokens, cached ones included [tokens/s]."""
        return self.requests_per_s * self.run.scenario.workload.request_tokens_mean

    @property
    def total_tokens_per_s(self) -> float:
        """Prompt and output tokens [tokens/s]."""
        return self.input_tokens_per_s + self.output_tokens_per_s

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        run, hour = self.run, self.hour
        out_mean = run.scenario.workload.output_tokens_mean * run.ranks
        scale = run.concurrency / (run.point.concurrency * run.ranks)
        deployment = run.scenario.deployment
        nearest = self.nearest
        return {
            "model": run.scenario.model.name,
            "node": run.scenario.node.name,
            "nodes": run.scenario.node.nodes,
            "engine": deployment.engine,
            "engine_version": deployment.engine_version,
            "workload": run.scenario.workload.name,
            "think_time_cap_s": _finite(run.scenario.workload.think_time.cap),
            "level": run.level,
            "concurrency": self.concurrency,
            "kv_tokens": run.budget.kv_tokens,
            "usable_kv_tokens": run.budget.usable_kv_tokens,
            "tier_tokens": self.tier_tokens,
            "stable": self.stable,
            "operating_points": [
                {
                    "requests_per_s": state.requests_per_s * run.ranks * scale,
                    "hit_rate": state.hit_rate,
                    "stable": state.stable,
                }
                for state in run.point.all_states
            ],
            "hit_rate": {
                "hbm": self.hit_rate.hbm,
                "offload": self.hit_rate.offload,
                "overall": self.hit_rate.overall,
                "theoretical": self.hit_rate.theoretical,
            },
            "throughput": {
                "requests_per_s": self.requests_per_s,
                "output_tokens_per_s": self.output_tokens_per_s,
                "input_tokens_per_s": self.input_tokens_per_s,
                "total_tokens_per_s": self.total_tokens_per_s,
                "total_tokens_per_s_per_gpu": self.total_tokens_per_s
                / run.scenario.node.total_gpus,
            },
            "ttft_s": self.latency.ttft_s.to_dict(),
            "tpot_s": self.latency.tpot_s.to_dict(),
            "e2e_s": self.latency.e2e_s.to_dict(),
            "interactivity_tokens_per_s": {
                "p50": 1.0 / self.latency.tpot_s.p50,
                "p90": 1.0 / self.latency.tpot_s.p90,
            },
            "normalized_interactivity_tokens_per_s": {
                "p50": 1.0 / self.latency.s_per_output_token.p50,
                "p90": 1.0 / self.latency.s_per_output_token.p90,
            },
            "utilization": self.utilization,
            "bottleneck": self.bottleneck,
            "cliff": {
                "concurrency": self.cliff.concurrency,
                "low": self.cliff.low,
                "high": self.cliff.high,
            },
            "regime": self.regime,
            "session_cap": self.session_cap,
            "running_limit": self.running_limit,
            "p_overflow": run.point.overflow,
            "benchmark_hour": {
                **hour.quantiles(hour.requests_per_s * out_mean * scale),
                "sd": float(hour.requests_per_s.std()) * out_mean * scale,
                "hit_rate": hour.quantiles(hour.hit_rate),
                "window_s": hour.window_s,
            },
            "p_collapsed": hour.collapsed(self.hit_rate.theoretical),
            "cost": run.cost.to_dict(),
            "intervals": {name: list(span) for name, span in self.intervals.items()},
            "interval_shares": self.spread_shares,
            "working_set_ends": [asdict(end) for end in self.working_set_ends],
            "nearest_case": None
            if nearest is None
            else {
                "source": nearest.source,
                "description": nearest.description,
                "metric": nearest.metric,
                "measured": nearest.measured,
                "predicted": nearest.predicted,
                "relative_error": nearest.relative_error,
            },
            "warnings": list(self.warnings),
            "evidence": f"uncalibrated; memory {run.budget.evidence}",
            "residual": run.point.residual,
        }

    @property
    def tier_tokens(self) -> float:
        """Tokens that the tier behind HBM holds [tokens]."""
        offload = self.run.scenario.deployment.offload
        if offload is None:
            return 0.0
        nodes = self.run.scenario.node.nodes
        return offload.bytes * nodes / self.run.budget.offload_bytes_per_token

    @property
    def regime(self) -> str:
        """Before, at or past the cliff, by the share of theoretical hits that is left."""
        if self.hit_rate.theoretical <= 0:
            return "no reuse"
        share = self.hit_rate.overall / self.hit_rate.theoretical
        return "before" if share >= 0.9 else "past" if share < 0.1 else "at"

    def explain(self) -> Explanation:
        """Return the chain of numbers behind the answer, with formula, source and kind."""
        from .report.explain import explain

        return explain(self.run)

    def to_frame(self) -> Any:
        """Return one pandas row, dotted names as columns."""
        return Sweep(rows=(self,)).to_frame()

    def plot(self, ax: Any = None) -> Any:
        """Draw the cliff around the point and mark it; return the matplotlib axes."""
        from .report.estimate_figure import estimate_figure

        return estimate_figure(self, ax)

    def __str__(self) -> str:
        from .report.first_screen import first_screen

        return first_screen(self)

    def _repr_html_(self) -> str:
        from .report.html_parts import estimate_table

        return estimate_table(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Estimates over concurrency."""

    rows: tuple[Estimate, ...]

    @property
    def peak_concurrency(self) -> int:
        """Concurrency of the largest output among the rows, the smallest on ties [1]."""
        best = max(self.rows, key=lambda row: (row.output_tokens_per_s, -row.concurrency))
        return best.concurrency

    @property
    def cliff_concurrency(self) -> int | None:
        """Smallest concurrency among the rows with under half of the theoretical hits [1]."""
        past = [
            row.concurrency
            for row in self.rows
            if row.hit_rate.overall < 0.5 * row.hit_rate.theoretical
        ]
        return min(past, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "peak_concurrency": self.peak_concurrency,
            "cliff_concurrency": self.cliff_concurrency,
            "hysteresis": self.hysteresis,
        }

    @property
    def hysteresis(self) -> dict[str, int] | None:
        """Where two states exist among the rows: C that loses the good one, and C that regains it.

        None where every row has a single state.
        """
        if all(row.stable for row in self.rows):
            return None
        half = 0.5 * self.rows[0].hit_rate.theoretical
        lost = [r.concurrency for r in self.rows if r.run.point.all_states[0].hit_rate < half]
        kept = [r.concurrency for r in self.rows if r.run.point.all_states[-1].hit_rate >= half]
        largest = max(row.concurrency for row in self.rows)
        return {"lost_at": min(lost, default=largest + 1), "regained_at": max(kept, default=0)}

    def to_frame(self) -> Any:
        """Return one pandas row per concurrency, dotted names as columns."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("pandas", "frames") from error
        return pandas.json_normalize([row.to_dict() for row in self.rows])

    def plot(self, ax: Any = None) -> Any:
        """Draw output, hit rate and cost over concurrency; return the matplotlib axes."""
        from .report.cliff_figure import cliff_figure

        return cliff_figure([self], ax=ax)

    def __str__(self) -> str:
        from .report.sweep_table import sweep_table

        return sweep_table(self)

    def _repr_html_(self) -> str:
        from .report.html_parts import rows_table

        return rows_table(self)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _utilization(run: Run) -> float:
    """Busy share of the engine: prefilling, or at least one sequence in decode."""
    flow, weights = run.point.branch.flow, run.point.composition.weights
    sessions = run.point.concurrency
    idle_decode = (1.0 - flow.decoding / (sessions + 1e-12)).clip(0.0, 1.0) ** sessions
    idle = (1.0 - flow.prefill_utilization) * idle_decode
    busy_time = float(weights @ (flow.cycle_s * (1.0 - idle)))
    return busy_time / float(weights @ flow.cycle_s)


def _bottleneck(run: Run) -> str:
    flow, weights = run.point.branch.flow, run.point.composition.weights
    state, ceiling = run.point.headline, run.scenario.workload.theoretical_hit_rate
    time = float(weights @ flow.cycle_s)
    prefill = float(weights @ (flow.cycle_s * flow.prefill_utilization)) / time
    running = float(weights @ (flow.prefill_s + flow.decode_s)) / time * run.point.concurrency
    if ceiling > 0 and (state.hit_rate < 0.9 * ceiling or run.point.overflow > 0.01):
        return "hbm_kv_tokens"
    if running > 0.97 * run.point.running_limit:
        return "running_requests"
    if prefill > 0.8:
        return "prefill_compute"
    decode = float(weights @ flow.decode_s) / time
    return "decode_steps" if decode > 0.5 else "think_time"


def _warnings(run: Run) -> list[str]:
    notes = []
    workload, limit = run.scenario.workload, run.budget.max_model_len
    if workload.request_tokens_mean > limit:
        notes.append(
            f"the mean prompt of {workload.request_tokens_mean:.0f} tokens exceeds the longest "
            f"request of {limit}; prompts are not cut by the model."
        )
    offload, host = run.scenario.deployment.offload, run.scenario.node.host_dram_bytes
    if offload is not None and 0 < host < offload.bytes:
        notes.append(
            f"the tier of {offload.bytes / 1e9:,.0f} GB exceeds the {host / 1e9:,.0f} GB of host "
            "memory that a node usually has."
        )
    if run.concurrency % run.ranks:
        notes.append("sessions are taken as spread evenly over data-parallel ranks.")
    if run.point.several:
        notes.append("two operating points exist; the headline is the one after a cold start.")
    if run.point.residual > 5e-3:
        notes.append(f"a fixed point is known to {run.point.residual:.1e} only.")
    return notes
