"""Where C sessions settle on one engine: composition, misses and queue solved together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from ..reuse.order_argument import EXACT_POPULATION, missing_fraction, think_nodes
from ..service.step_law import StepLaw
from ..spec.workload import Workload
from . import amva, closed_form, markov_chain
from .composition import Composition, gamma_composition
from .fixed_points import Branch, FixedPoints, find_all
from .flow_table import FlowTable, tabulate
from .service_demand import ServiceDemand, service_demand

FloatArray = npt.NDArray[np.float64]

LEVELS: dict[str, Callable[..., amva.Flow]] = {
    "closed": closed_form.solve,
    "fast": amva.solve,
    "exact": markov_chain.solve,
}
# Grid of the flow table by level: (miss fractions, loaded shares).
TABLE_POINTS = {"closed": (57, 9), "fast": (57, 9), "exact": (25, 5)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """What the engine can keep of the sessions' tokens.

    Parameters
    ----------
    hbm_tokens : float
        Usable KV tokens in HBM, after block and state costs [tokens].
    tier_tokens : float
        Tokens the tier behind it holds, 0 for none; write-through, so it includes HBM [tokens].
    link_s_per_token : float
        Link seconds to load one cached token [s].
    all_or_nothing : bool
        True where a partial prefix is of no use (recurrent state).
    """

    hbm_tokens: float
    tier_tokens: float = 0.0
    link_s_per_token: float = 0.0
    all_or_nothing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Averages over the composition of one branch of fixed points.

    Parameters
    ----------
    requests_per_s : float
        Long-run rate, the harmonic average ``C / E_Y[c(Y)]`` [requests/s].
    hit_rate_hbm, hit_rate_offload : float
        Token-weighted share of prompts found in HBM and in the tier [1].
    stable : bool
        False for the branch between two stable ones.
    """

    requests_per_s: float
    hit_rate_hbm: float
    hit_rate_offload: float
    stable: bool

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens found in any tier [1]."""
        return self.hit_rate_hbm + self.hit_rate_offload


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """The solved network of one engine replica.

    Parameters
    ----------
    concurrency : int
        Live sessions [1].
    headline : Settled
        The state reached from an empty, cold start.
    all_states : tuple of Settled
        Every distinct state, unstable ones included.
    branch : Branch
        Flow and misses per composition of the headline state.
    composition : Composition
        Live tokens and weights.
    demand : ServiceDemand
        Service curves the solution used.
    overflow : float
        Turn-clock probability that the live tokens exceed HBM [1].
    running_limit : float
        Requests that can run at once [1].
    several : bool
        True where some composition has more than one fixed point.
    residual : float
        Largest relative residual of a fixed point [1].
    """

    concurrency: int
    headline: Settled
    all_states: tuple[Settled, ...]
    branch: Branch
    composition: Composition
    demand: ServiceDemand
    overflow: float
    running_limit: float
    several: bool
    residual: float


def running_room(cache: Cache, workload: Workload, limit: int) -> float:
    """Requests whose contexts fit in HBM together, at most the engine's limit [1].

    Notes
    -----
    The number of whole contexts that fit is a renewal count, ``B/m + (cv^2 - 1)/2`` on average,
    with m the context half way through its decode.
    """
    held = workload.request_tokens_mean + 0.5 * workload.output_tokens_mean
    fits = cache.hbm_tokens / held + 0.5 * (workload.request_tokens_cv**2 - 1.0)
    return float(min(max(fits, 1.0), limit))


def solve(
    law: StepLaw,
    workload: Workload,
    cache: Cache,
    concurrency: int,
    *,
    level: str = "fast",
    prefix_caching: bool = True,
) -> OperatingPoint:
    """Return the operating points of C sessions on one engine.

    Parameters
    ----------
    law : StepLaw
        Seconds of an engine step.
    workload : Workload
        What sessions ask for.
    cache : Cache
        Capacity of HBM and of the tier behind it.
    concurrency : int
        Live sessions C [1].
    level : {"closed", "fast", "exact"}
        Queue model: asymptotes, approximate MVA, or the Markov chain.
    prefix_caching : bool
        False where nothing is kept between requests.

    Raises
    ------
    SpecError
        If the level is unknown or HBM cannot hold one mean request.

    Notes
    -----
    For each composition Y the cycle time solves ``c = T(c; Y)``, ``T = C / X(m(Y, c))``; then
    ``X = C / E_Y[c]`` and ``h = 1 - E_Y[m]`` in the turn clock. Derivation: ``composition``.
    """
    if level not in LEVELS:
        raise SpecError(f"level {level!r} is not one of {', '.join(LEVELS)}.", field="level")
    shared = workload.shared_prefix_tokens
    room = cache.hbm_tokens - shared
    if room < workload.request_tokens_mean:
        raise SpecError(
            f"HBM keeps {cache.hbm_tokens:.0f} tokens, less than one mean request of "
            f"{workload.request_tokens_mean:.0f}.",
            field="kv_tokens",
        )
    composition = gamma_composition(concurrency, workload.tree_tokens_mean, workload.tree_tokens_cv)
    demand = service_demand(law, workload, concurrency)
    limit = running_room(cache, workload, law.max_sequences)
    reusable = workload.theoretical_hit_rate * workload.request_tokens_mean - shared
    reusable = max(reusable, 0.0)
    table = tabulate(
        lambda miss, load_s: LEVELS[level](demand, miss, load_s, concurrency, limit),
        reusable * cache.link_s_per_token if cache.tier_tokens > 0 else 0.0,
        *TABLE_POINTS[level],
    )
    think = think_nodes(workload.think_time, 16 if concurrency <= EXACT_POPULATION else 64)
    ended = workload.ended_tokens_mean / workload.turns_mean
    lossless = table(np.zeros(1), np.zeros(1))
    # Running requests hold new tokens too: as many as without losses, so that T rises with c.
    new_tokens = (1.0 - workload.theoretical_hit_rate) * workload.request_tokens_mean
    grown = (new_tokens + 0.5 * workload.output_tokens_mean) * float(lossless.decoding[0])

    def missing(index: npt.NDArray[np.intp], cycle: FloatArray, capacity: float) -> FloatArray:
        if not prefix_caching:
            return np.ones_like(cycle)
        return missing_fraction(
            live_tokens=composition.live_tokens[index] + grown,
            cycle_s=cycle,
            capacity_tokens=capacity,
            concurrency=concurrency,
            session_cv=workload.tree_tokens_cv,
            ended_tokens_per_turn=ended,
            think=think,
            all_or_nothing=cache.all_or_nothing,
        )

    def cycle_map(
        index: npt.NDArray[np.intp], cycle: FloatArray
    ) -> tuple[amva.Flow, FloatArray, FloatArray]:
        miss = missing(index, cycle, room)
        tier_miss = miss
        if cache.tier_tokens > cache.hbm_tokens:
            tier_miss = missing(index, cycle, cache.tier_tokens - shared)
        return table(tier_miss, miss - tier_miss), miss, tier_miss

    points = len(composition.weights)
    slowest = _slowest(table)
    roots = find_all(
        cycle_map,
        np.full(points, float(lossless.cycle_s[0])),
        np.full(points, slowest),
    )
    average = _averages(roots, composition, workload, concurrency, reusable)
    states = average(roots.cold, True)
    every = [states]
    share = float(composition.weights[roots.several].sum())
    if share > 1e-3:
        every = [average(roots.warm, True), average(roots.unstable, False), states]
    return OperatingPoint(
        concurrency=concurrency,
        headline=states,
        all_states=tuple(every),
        branch=roots.cold,
        composition=composition,
        demand=demand,
        overflow=float(composition.weights[composition.live_tokens > room].sum()),
        running_limit=limit,
        several=share > 1e-3,
        residual=roots.residual,
    )


def _slowest(table: FlowTable) -> float:
    ones = np.ones(1)
    return float(max(table(ones, np.zeros(1)).cycle_s[0], table(np.zeros(1), ones).cycle_s[0]))


def _averages(
    roots: FixedPoints,
    composition: Composition,
    workload: Workload,
    concurrency: int,
    reusable_tokens: float,
) -> Callable[[Branch, bool], Settled]:
    weights = composition.weights
    floor = workload.shared_prefix_tokens / workload.request_tokens_mean
    floor = min(floor, workload.theoretical_hit_rate)
    reach = reusable_tokens / workload.request_tokens_mean

    def average(branch: Branch, stable: bool) -> Settled:
        kept = 1.0 - float(weights @ branch.miss)
        loaded = float(weights @ (branch.miss - branch.tier_miss))
        return Settled(
            requests_per_s=concurrency / float(weights @ branch.flow.cycle_s),
            hit_rate_hbm=floor + reach * kept,
            hit_rate_offload=reach * loaded,
            stable=stable,
        )

    return average
