"""Where C sessions settle on one engine: composition, misses and queue solved together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import InfeasibleError, SpecError
from ..reuse.order_argument import EXACT_POPULATION, missing_fraction, think_nodes
from ..service.step_law import StepLaw
from ..spec.workload import Workload
from . import amva, closed_form, markov_chain
from .composition import Composition, gamma_composition
from .fixed_points import Branch, FixedPoints, find_all
from .flow_table import FlowTable, QueueModel, tabulate
from .loss_size import LossSizes, loss_sizes
from .service_demand import ServiceDemand, service_demand

FloatArray = npt.NDArray[np.float64]

LEVELS: dict[str, Callable[..., amva.Flow]] = {
    "closed": closed_form.solve,
    "fast": amva.solve,
    "exact": markov_chain.solve,
}
# Grid of the flow table by level: (miss fractions, loaded shares).
TABLE_POINTS = {"closed": (41, 7), "fast": (41, 7), "exact": (17, 4)}
# Context scales by level; few sessions have a wide composition, which takes more.
SCALES = {"closed": 4, "fast": 4, "exact": 3}
EXTRA_SCALES = 3
FEW_SESSIONS = 8


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
    scale : ndarray
        Context length of each composition over its mean [1].
    loss_size : ndarray
        Share of its reusable tokens that a request with any loss has lost [1].
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
    scale: FloatArray
    loss_size: FloatArray
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
        If the level is unknown.
    InfeasibleError
        If HBM cannot hold one mean request.

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
        raise InfeasibleError(
            f"HBM keeps {cache.hbm_tokens:,.0f} tokens, less than one mean request of "
            f"{workload.request_tokens_mean:,.0f}.",
            details={"kv_tokens": cache.hbm_tokens, "needed": workload.request_tokens_mean},
        )
    composition = gamma_composition(concurrency, workload.tree_tokens_mean, workload.tree_tokens_cv)
    # A heavy composition is one of long contexts: they cost more to prefill and to decode with.
    scale = composition.live_tokens / (concurrency * workload.tree_tokens_mean)
    limit = running_room(cache, workload, law.max_sequences)
    reusable = workload.theoretical_hit_rate * workload.request_tokens_mean - shared
    reusable = max(reusable, 0.0)
    think = think_nodes(workload.think_time, 16 if concurrency <= EXACT_POPULATION else 64)
    ended = workload.ended_tokens_mean / workload.turns_mean
    capacity = max(cache.hbm_tokens, cache.tier_tokens) - shared
    sizes = LossSizes.whole()
    if prefix_caching and not cache.all_or_nothing:
        sizes = loss_sizes(composition, workload, capacity, concurrency, think)
    table = _flow_table(law, workload, cache, concurrency, level, composition, reusable, sizes)
    nothing, all_of_it = np.zeros_like(scale), np.ones_like(scale)
    lossless = table(scale, nothing, nothing)
    slowest = table(scale, all_of_it, nothing).cycle_s
    if cache.tier_tokens > 0:
        slowest = np.maximum(slowest, table(scale, nothing, all_of_it).cycle_s)
    # Running requests hold new tokens too: as many as without losses, so that T rises with c.
    new_tokens = (1.0 - workload.theoretical_hit_rate) * workload.request_tokens_mean
    grown = (new_tokens + 0.5 * workload.output_tokens_mean) * lossless.decoding

    def missing(index: npt.NDArray[np.intp], cycle: FloatArray, capacity: float) -> FloatArray:
        if not prefix_caching:
            return np.ones_like(cycle)
        # A session that leaves sees the others as a network of C - 1 would be: with a busy server
        # that has the same rate, so each of them thinks more often than in a network of C.
        busy = np.clip(1.0 - lossless.cycle_s[index] / cycle, 0.0, 1.0)
        return missing_fraction(
            live_tokens=composition.live_tokens[index] + grown[index],
            cycle_s=cycle * (max(concurrency - 1, 1) / concurrency) ** busy,
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
        return table(scale[index], tier_miss, miss - tier_miss), miss, tier_miss

    roots = find_all(cycle_map, lossless.cycle_s, slowest)
    average = _averages(roots, composition, scale, workload, concurrency, reusable)
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
        scale=scale,
        loss_size=sizes(roots.cold.tier_miss),
        demand=service_demand(law, workload, concurrency),
        overflow=float(composition.weights[composition.live_tokens > room].sum()),
        running_limit=limit,
        several=share > 1e-3,
        residual=roots.residual,
    )


def _flow_table(
    law: StepLaw,
    workload: Workload,
    cache: Cache,
    concurrency: int,
    level: str,
    composition: Composition,
    reusable_tokens: float,
    sizes: LossSizes,
) -> FlowTable:
    """Tabulate the queue at a few context scales that span the composition."""
    mean = concurrency * workload.tree_tokens_mean
    scales = np.ones(1)
    if len(composition.weights) > 1:
        reached = np.cumsum(composition.weights)
        low, high = np.interp([1e-3, 1.0 - 1e-4], reached, composition.live_tokens / mean)
        extra = EXTRA_SCALES if concurrency < FEW_SESSIONS else 0
        scales = np.geomspace(low, high, SCALES[level] + extra)
    queues = []
    for scale in scales.tolist():
        scaled = workload.at_scale(scale)
        demand = service_demand(law, scaled, concurrency)
        limit = running_room(cache, scaled, law.max_sequences)
        queues.append(_queue(level, demand, concurrency, limit, sizes))
    link_s = scales * reusable_tokens * (cache.link_s_per_token if cache.tier_tokens > 0 else 0.0)
    think_s = workload.think_time.mean()
    return tabulate(queues, scales, link_s, think_s, *TABLE_POINTS[level])


def _queue(
    level: str, demand: ServiceDemand, concurrency: int, limit: float, sizes: LossSizes
) -> QueueModel:
    solver = LEVELS[level]
    return lambda miss, load_s: solver(demand, miss, load_s, concurrency, limit, sizes(miss))


def _averages(
    roots: FixedPoints,
    composition: Composition,
    scale: FloatArray,
    workload: Workload,
    concurrency: int,
    reusable_tokens: float,
) -> Callable[[Branch, bool], Settled]:
    weights = composition.weights
    floor = workload.shared_prefix_tokens / workload.request_tokens_mean
    floor = min(floor, workload.theoretical_hit_rate)
    reach = reusable_tokens / workload.request_tokens_mean

    # Tokens are counted, and a long context has more of them.
    tokens = weights * scale / float(weights @ scale)

    def average(branch: Branch, stable: bool) -> Settled:
        kept = max(1.0 - float(tokens @ branch.miss), 0.0)
        loaded = max(float(tokens @ (branch.miss - branch.tier_miss)), 0.0)
        return Settled(
            requests_per_s=concurrency / float(weights @ branch.flow.cycle_s),
            hit_rate_hbm=floor + reach * kept,
            hit_rate_offload=reach * loaded,
            stable=stable,
        )

    return average
