"""Evaluation of one configuration: solved points, and the rate that no point can exceed."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace

import numpy as np

from ..answer import BEFORE_CLIFF
from ..errors import InfeasibleError, SpecError
from ..memory.budget import KvBudget
from ..network.operating_point import LEVELS, Cache, running_room
from ..network.service_demand import ServiceDemand, service_demand
from ..pipeline import Run, cache_of, session_budget, solved
from ..scenario import ResolvedScenario
from ..service.engine_law import engine_law
from ..service.step_law import StepLaw
from .configuration import Configuration
from .slo import Slo

LARGEST_CONCURRENCY = 4096
# How far the lossless rate may fall past its peak, where a range of sessions holds the peak; and
# the ranges on which it is looked at closely. Checked on every value that a search computes.
PAST_PEAK = 0.02
NARROW = 64
FLAT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a plan must keep.

    Parameters
    ----------
    slos : tuple of Slo
        Bounds on latencies.
    hit_share : float
        Least share of the theoretical hits, 0 to allow a plan past its cliff [1].
    cliff_margin : float
        The hits must hold with ``C / (1 - margin)`` sessions too [1].
    """

    slos: tuple[Slo, ...] = ()
    hit_share: float = BEFORE_CLIFF
    cliff_margin: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.cliff_margin < 1:
            raise SpecError("cliff margin must be in [0, 1).", field="cliff_margin")

    def sessions_to_keep(self, concurrency: int) -> int:
        """Sessions at which the hits must hold for a plan at `concurrency` [1]."""
        return math.ceil(concurrency / (1.0 - self.cliff_margin) - 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """One solved point, or the reason why there is none.

    Parameters
    ----------
    concurrency : int
        Live sessions of the replica [1].
    dram_bytes : float
        Tier per node [bytes].
    run : Run or None
        The solved stages; None where the engine cannot run the point.
    hit_share : float
        Overall hits over the theoretical ones [1].
    figures : dict of str to float
        The figure of every SLO, by key.
    broken : tuple of str
        Rules it breaks; each stays broken with more sessions or less DRAM.
    """

    concurrency: int
    dram_bytes: float
    run: Run | None
    hit_share: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    broken: tuple[str, ...] = ()

    @property
    def requests_per_s(self) -> float:
        """Rate of one replica, 0 where it cannot run [requests/s]."""
        return 0.0 if self.run is None else self.run.requests_per_s

    @property
    def hit_rate(self) -> float:
        """Token-weighted overall hit rate [1]."""
        return 0.0 if self.run is None else self.run.point.headline.hit_rate


class Evaluator:
    """Solves points of one configuration, each once; the step law and budgets are kept."""

    def __init__(self, configuration: Configuration, rules: Rules, level: str):
        self.configuration = configuration
        self.rules = rules
        self.level = level
        self.evaluated: dict[tuple[int, float], Evaluated] = {}
        self._runs: dict[tuple[int, float], Run | str] = {}
        self._budgets: dict[int, KvBudget] = {}
        self.lossless_rates: dict[tuple[int, int], float] = {}
        self._demands: dict[int, ServiceDemand] = {}
        scenario = configuration.scenario
        self.law: StepLaw = engine_law(scenario.model, scenario.node, scenario.deployment)
        budget = self.budget(1)
        if not budget.fits:
            short = budget.shortfall_bytes_per_gpu / 2**30
            raise InfeasibleError(
                f"{scenario.model.name} does not fit {configuration}: {short:.1f} GiB short on "
                f"each GPU.",
                details={
                    "binding": ["hbm_bytes"],
                    "shortfall_bytes_per_gpu": budget.shortfall_bytes_per_gpu,
                },
            )

    def at_size(self, dram_bytes: float) -> Evaluator:
        """The same evaluator, and the same solved points, with one DRAM size to choose from."""
        other = copy.copy(self)
        other.configuration = replace(self.configuration, dram_sizes_bytes=(dram_bytes,))
        return other

    @property
    def scenario(self) -> ResolvedScenario:
        """The configuration's scenario, without a tier."""
        return self.configuration.scenario

    @property
    def largest_concurrency(self) -> int:
        """Sessions beyond which no plan is looked for, spread evenly over the ranks [1]."""
        ranks = self.ranks
        return min(LARGEST_CONCURRENCY // ranks, self.law.max_sequences) * ranks

    @property
    def ranks(self) -> int:
        """Data-parallel ranks; sessions are whole multiples of them [1]."""
        return self.scenario.deployment.dp

    def budget(self, concurrency: int) -> KvBudget:
        """KV budget at a concurrency; the tier has no part in it."""
        if concurrency not in self._budgets:
            self._budgets[concurrency] = session_budget(self.scenario, concurrency)
        return self._budgets[concurrency]

    def point(self, concurrency: int, dram_bytes: float) -> Evaluated:
        """Return the solved point with the rules it breaks."""
        key = (concurrency, dram_bytes)
        if key not in self.evaluated:
            self.evaluated[key] = self._evaluate(concurrency, dram_bytes)
        return self.evaluated[key]

    def _evaluate(self, concurrency: int, dram_bytes: float) -> Evaluated:
        run = self._run(concurrency, dram_bytes)
        if isinstance(run, str):
            return Evaluated(
                concurrency=concurrency, dram_bytes=dram_bytes, run=None, broken=(run,)
            )
        share, broken = run.hit_share, []
        kept = self.rules.sessions_to_keep(concurrency)
        if self.rules.hit_share > 0:
            farther = run if kept == concurrency else self._run(kept, dram_bytes)
            held = 0.0 if isinstance(farther, str) else farther.hit_share
            if held < self.rules.hit_share:
                broken.append(
                    f"hits at {held:.1%} of their ceiling with {kept} sessions "
                    f"(limit {self.rules.hit_share:.0%})"
                )
        figures = {}
        if self.rules.slos:
            latency = run.latency()
            for slo in self.rules.slos:
                figures[slo.key] = slo.value(latency)
                if not slo.met(latency):
                    broken.append(f"{slo.key} = {figures[slo.key]:.3g} (limit {slo.limit:g})")
        return Evaluated(
            concurrency=concurrency,
            dram_bytes=dram_bytes,
            run=run,
            hit_share=share,
            figures=figures,
            broken=tuple(broken),
        )

    def _run(self, concurrency: int, dram_bytes: float) -> Run | str:
        key = (concurrency, dram_bytes)
        if key not in self._runs:
            self._runs[key] = self._solve(concurrency, dram_bytes)
        return self._runs[key]

    def _solve(self, concurrency: int, dram_bytes: float) -> Run | str:
        scenario = self.configuration.with_dram(dram_bytes)
        budget = self.budget(concurrency)
        if not budget.fits:
            return f"{concurrency} sessions do not fit HBM"
        cache = cache_of(scenario, budget)
        if not holds_a_request(cache, scenario):
            return f"HBM keeps less than one mean request with {concurrency} sessions"
        return solved(scenario, budget, self.law, cache, concurrency=concurrency, level=self.level)

    def lossless_rate(self, concurrency: int, fewest: int | None = None) -> float:
        """Rate with every reusable token in HBM, which no DRAM size exceeds [requests/s].

        Parameters
        ----------
        concurrency : int
            Live sessions [1].
        fewest : int, optional
            Sessions whose (larger) running room is used; `concurrency` where not given [1].

        Notes
        -----
        The queue of mean contexts at no misses and no loads. The rate falls with both, and the
        cycle is convex in the length of contexts, so their spread only lengthens its mean.
        """
        key = (concurrency, concurrency if fewest is None else fewest)
        if key not in self.lossless_rates:
            self.lossless_rates[key] = self._lossless(*key)
        return self.lossless_rates[key]

    def _lossless(self, concurrency: int, fewest: int) -> float:
        scenario = self.scenario
        ranks = scenario.deployment.dp
        sessions = math.ceil(concurrency / ranks)
        cache = cache_of(scenario, self.budget(fewest))
        if not holds_a_request(cache, scenario):
            return 0.0
        if sessions not in self._demands:
            self._demands[sessions] = service_demand(self.law, scenario.workload, sessions)
        flow = LEVELS[self.level](
            self._demands[sessions],
            np.zeros(1) if scenario.deployment.prefix_caching else np.ones(1),
            np.zeros(1),
            sessions,
            running_room(cache, scenario.workload, self.law.max_sequences),
        )
        return sessions * ranks / float(flow.cycle_s[0])

    def rate_bound(self, few: int, many: int) -> float:
        """Rate that no point with `few` to `many` sessions exceeds, at any DRAM [requests/s].

        Notes
        -----
        With the running room held at that of `few` sessions, the lossless rate rises with the
        sessions to a peak where the room is taken, and from there on falls a little. On the rising
        side its value at `many` is the bound, on the falling side that at `few`; around the peak
        its value at `many` and what it may have fallen by (`PAST_PEAK`).
        """
        high = self.lossless_rate(many, few)
        if few == many:
            return high
        if many - few <= NARROW * self.ranks:
            if high > self.lossless_rate(many - self.ranks, few) * (1.0 + FLAT):
                return high
            low = self.lossless_rate(few, few)
            if low > self.lossless_rate(few + self.ranks, few) * (1.0 + FLAT):
                return low
        return high * (1.0 + PAST_PEAK)


def holds_a_request(cache: Cache, scenario: ResolvedScenario) -> bool:
    """True where HBM keeps one mean request beside the shared prefix."""
    room = cache.hbm_tokens - scenario.workload.shared_prefix_tokens
    return room >= scenario.workload.request_tokens_mean
