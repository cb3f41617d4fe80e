"""The row of stages: spec -> memory -> reuse -> service -> network -> cost -> answer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .cost.rental import usd_per_hour
from .cost.statement import Cost, cost_statement
from .errors import SpecError
from .memory.budget import KvBudget, kv_budget
from .memory.inverse import shortage
from .network.benchmark_hour import BenchmarkHour, benchmark_hour
from .network.latency import Latency, latency
from .network.operating_point import Cache, OperatingPoint, solve
from .network.uneven_ranks import uneven_point
from .scenario import ResolvedScenario, Scenario
from .service.engine_law import engine_law
from .service.step_law import StepLaw
from .service.transfer import tier_transfer
from .spec.attention import GatedDeltaNet, KimiDeltaAttention, LightningAttention, Mamba2
from .spec.model import Model

RECURRENT = (KimiDeltaAttention, GatedDeltaNet, Mamba2, LightningAttention)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One scenario at one concurrency, solved: every stage's output side by side.

    Parameters
    ----------
    scenario : ResolvedScenario
        What was given.
    budget : KvBudget
        Memory stage.
    law : StepLaw
        Service stage, one data-parallel rank.
    point : OperatingPoint
        Network stage, one data-parallel rank.
    ranks : int
        Data-parallel ranks [1].
    concurrency : int
        Live sessions of the whole replica [1].
    level : str
        Queue model used.
    """

    scenario: ResolvedScenario
    budget: KvBudget
    law: StepLaw
    point: OperatingPoint
    ranks: int
    concurrency: int
    level: str

    @property
    def requests_per_s(self) -> float:
        """Requests of the whole replica [requests/s]."""
        share = self.concurrency / (self.point.concurrency * self.ranks)
        return self.point.headline.requests_per_s * self.ranks * share

    @property
    def output_tokens_per_s(self) -> float:
        """Output of the whole replica [tokens/s]."""
        return self.requests_per_s * self.scenario.workload.output_tokens_mean

    @property
    def hit_share(self) -> float:
        """Overall hit rate over the theoretical one; 1 where nothing can be reused [1]."""
        ceiling = self.scenario.workload.theoretical_hit_rate
        return self.point.headline.hit_rate / ceiling if ceiling > 0 else 1.0

    @property
    def cost(self) -> Cost:
        """Cost stage: the statement at this operating point."""
        return _cost(self)

    def latency(self) -> Latency:
        """Percentiles of TTFT, TPOT and end-to-end time."""
        return latency(self.point, self.law, self.scenario.workload)

    def benchmark_hour(self) -> BenchmarkHour:
        """Scatter of one-hour runs, one data-parallel rank."""
        return benchmark_hour(self.point, self.scenario.workload)


def memory(scenario: Scenario | ResolvedScenario, *, concurrency: int | None = None) -> KvBudget:
    """Return the KV budget of a scenario: does it fit, and how many tokens are left."""
    resolved = _resolved(scenario)
    live = None if concurrency is None else whole_sessions(concurrency)
    return kv_budget(resolved.model, resolved.node, resolved.deployment, concurrency=live)


def run(
    scenario: Scenario | ResolvedScenario,
    *,
    concurrency: int,
    level: str = "fast",
    law: StepLaw | None = None,
) -> Run:
    """Return the solved scenario at a concurrency; `law` spares building the engine's law again.

    Raises
    ------
    SpecError
        If the concurrency is not a whole number >= 1.
    InfeasibleError
        If the model does not fit, with what is short and what would fit.
    """
    sessions = whole_sessions(concurrency)
    resolved = _resolved(scenario)
    budget = fitting_budget(resolved, sessions)
    law = law or engine_law(resolved.model, resolved.node, resolved.deployment)
    cache = cache_of(resolved, budget)
    return solved(resolved, budget, law, cache, concurrency=sessions, level=level)


def whole_sessions(concurrency: Any) -> int:
    """Return a number of sessions, checked.

    Raises
    ------
    SpecError
        If it is not a whole number >= 1.
    """
    number = isinstance(concurrency, (int, float, np.integer)) and not isinstance(concurrency, bool)
    if number and math.isfinite(concurrency) and concurrency >= 1 and concurrency % 1 == 0:
        return int(concurrency)
    raise SpecError(f"concurrency must be a whole number >= 1, got {concurrency}.", field="c")


def session_budget(resolved: ResolvedScenario, concurrency: int) -> KvBudget:
    """Return the KV budget with the states and windows of the sessions that can be in it.

    Notes
    -----
    A session holds its fixed share beside its context. Where not all sessions fit, those that are
    evicted hold neither, so the share is taken for as many as fit with one mean request each.
    """
    return kv_budget(
        resolved.model,
        resolved.node,
        resolved.deployment,
        concurrency=concurrency,
        request_tokens=resolved.workload.request_tokens_mean,
    )


def fitting_budget(resolved: ResolvedScenario, concurrency: int) -> KvBudget:
    """Return `session_budget`.

    Raises
    ------
    InfeasibleError
        If the model does not fit, with what is short and what would fit.
    """
    budget = session_budget(resolved, concurrency)
    if not budget.fits:
        raise shortage(resolved.model, resolved.node, resolved.deployment, budget)
    return budget


def solved(
    resolved: ResolvedScenario,
    budget: KvBudget,
    law: StepLaw,
    cache: Cache,
    *,
    concurrency: int,
    level: str,
) -> Run:
    """Return the run of a scenario whose stages before the network are known.

    Parameters
    ----------
    resolved : ResolvedScenario
        What is given.
    budget, law, cache
        Memory and service stages; law and cache of one data-parallel rank.
    concurrency : int
        Live sessions of the whole replica [1].
    level : {"closed", "fast", "exact"}
        Queue model.
    """
    ranks = resolved.deployment.dp

    def rank(sessions: int) -> OperatingPoint:
        return solve(
            law,
            resolved.workload,
            cache,
            sessions,
            level=level,
            prefix_caching=resolved.deployment.prefix_caching,
        )

    lighter, left = divmod(concurrency, ranks)
    point = rank(lighter + bool(left))
    if left and lighter:
        point = uneven_point(point, rank(lighter), ranks, concurrency)
    return Run(
        scenario=resolved,
        budget=budget,
        law=law,
        point=point,
        ranks=ranks,
        concurrency=concurrency,
        level=level,
    )


def cache_of(resolved: ResolvedScenario, budget: KvBudget) -> Cache:
    """Return what one data-parallel rank can keep: usable HBM tokens and the tier behind them."""
    offload, ranks = resolved.deployment.offload, resolved.deployment.dp
    tier_tokens, link = 0.0, 0.0
    if offload is not None:
        held = offload.bytes * resolved.node.nodes / budget.offload_bytes_per_token
        tier_tokens = held / ranks
        moved = tier_transfer(resolved.model, resolved.node, resolved.deployment)
        link = moved.load_s_per_token
    return Cache(
        hbm_tokens=budget.usable_kv_tokens / ranks,
        tier_tokens=tier_tokens,
        link_s_per_token=link,
        all_or_nothing=has_recurrent_state(resolved.model),
    )


def has_recurrent_state(model: Model) -> bool:
    """True where some layer keeps a recurrent state, so that a partial prefix is of no use."""
    return any(isinstance(group.mixer, RECURRENT) for group in model.layers)


def sweep_runs(
    scenario: Scenario | ResolvedScenario, concurrency: Sequence[int], level: str = "fast"
) -> list[Run]:
    """Return the solved scenario at each concurrency."""
    resolved = _resolved(scenario)
    law = engine_law(resolved.model, resolved.node, resolved.deployment)
    return [run(resolved, concurrency=c, level=level, law=law) for c in concurrency]


def with_workload(resolved: ResolvedScenario, **changes: float) -> ResolvedScenario:
    """Return the scenario with some workload means replaced, each on its own."""
    kept: dict[str, Any] = dict(changes)
    return replace(resolved, workload=dataclasses.replace(resolved.workload, **kept))


def _resolved(scenario: Scenario | ResolvedScenario) -> ResolvedScenario:
    if isinstance(scenario, Scenario):
        return scenario.resolve()
    if isinstance(scenario, ResolvedScenario):
        return scenario
    raise SpecError(f"a Scenario is needed, got {type(scenario).__name__}.", field="scenario")


def _cost(result: Run) -> Cost:
    resolved = result.scenario
    hourly = None
    if resolved.gpu_hour_usd is not None:
        offload = resolved.deployment.offload
        hourly = usd_per_hour(
            resolved.node.total_gpus,
            resolved.gpu_hour_usd,
            0.0 if offload is None else offload.bytes * resolved.node.nodes,
            resolved.dram_gb_hour_usd,
        )
    return cost_statement(
        usd_per_hour=hourly,
        price_basis=resolved.gpu_hour_basis,
        tariff=resolved.tariff,
        tariff_basis=resolved.tariff_basis,
        bill_cached=resolved.bill_cached,
        workload=resolved.workload,
        requests_per_s=result.requests_per_s,
        hit_rate=result.point.headline.hit_rate,
    )
