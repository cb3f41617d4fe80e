"""Hit rate with queue feedback: misses lengthen service, waiting makes reuse cyclic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .composition import Composition, composition
from .gamma_law import gamma_excess
from .lane_law import LaneLaw
from .pinned_queue import QueuePoint, pinned_queue
from .service_model import ServiceModel

FloatArray = npt.NDArray[np.float64]

_SCAN = np.linspace(0.0, 0.999, 11)
_BISECTIONS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackPoint:
    """The composition average, and what it is made of.

    Parameters
    ----------
    hit_rate : float
        Token-weighted long-run hit rate over turns [1].
    cold_hit_rate, warm_hit_rate : float
        The same if every composition that has two operating points kept the lower or the
        upper one; equal where there is one [1].
    requests_per_s : float
        C over the mean cycle time, a harmonic mean over compositions [1/s].
    total_tokens, weight, conditional_hit_rate : ndarray
        Y [tokens], its share of turns [1], and the hit rate given Y [1].
    """

    hit_rate: float
    cold_hit_rate: float
    warm_hit_rate: float
    requests_per_s: float
    total_tokens: FloatArray
    weight: FloatArray
    conditional_hit_rate: FloatArray


def _found_tokens(
    law: LaneLaw,
    mix: Composition,
    concurrency: int,
    capacity_tokens: float,
    cycle_s: FloatArray,
    covariance: float,
) -> FloatArray:
    """Prefix tokens found per request, given Y and the cycle time, shape (nodes,) [tokens].

    Another lane stays untouched during my gap iff it thinks when I leave and still thinks when
    I come back: the share r = E[w (z' - z)^+]/(E[w] c) of the tokens. The tokens of the others
    are at most Y - w, so what is left untouched is a binomial number of contexts: none with
    probability (1 - r)^(C-1), else a Gamma amount of matched moments.
    """
    others = concurrency - 1
    spread = max(law.context_square / law.context_mean**2 - 1.0, 0.0)
    # Long contexts go with long gaps: seen in time the others are a little larger than in turns.
    tilt = 1.0 + covariance / (law.context_mean * cycle_s)
    in_time = (law.context_mean * tilt * cycle_s)[:, None]
    idle = np.clip(law.untouched_token_s / in_time, 0.0, 1.0 - 1e-9)[:, :, None]
    scale = (mix.context_mean / law.context_mean / cycle_s)[:, None]
    dead = (others * scale * law.dead_token_s)[:, :, None]
    rest = np.maximum(mix.total_tokens[:, None, None] - law.context_tokens, 0.0)
    rest = rest * tilt[:, None, None]
    none = (1.0 - idle) ** others
    some = np.maximum(1.0 - none, 1e-12)
    mean = np.maximum(idle * rest, 1e-3)
    variance = rest**2 / others * idle * (1.0 - idle) * (1.0 + spread) + 1e-6
    given = mean / some
    around = np.maximum((variance + mean**2) / some - given**2, 1e-3 * given**2)
    shape = given**2 / around
    room = capacity_tokens - rest - dead
    prefix = law.prefix_tokens
    partly = np.clip(
        gamma_excess(-room, given, shape) - gamma_excess(prefix - room, given, shape), 0.0, prefix
    )
    found = none * np.clip(room, 0.0, prefix) + some * partly
    tokens: FloatArray = (mix.found_share * found).sum(axis=(1, 2)) / np.maximum(mix.weight, 1e-300)
    return tokens


def upper_branch_share(
    total_tokens: FloatArray, weight: FloatArray, two: npt.NDArray[np.bool_]
) -> FloatArray:
    """Chance that a composition with two operating points is on the upper one, per node [1].

    Parameters
    ----------
    total_tokens, weight : ndarray, shape (nodes,)
        Y [tokens] and its share of turns [1]; Y grows.
    two : ndarray of bool
        Nodes with two operating points.

    Notes
    -----
    Y wanders like a reversible diffusion of density pi. The branch is the one that was alone
    where Y last left the two-branch range [a, b]: the upper one below a, the lower above b. Run
    backwards in time that is the chance to reach a before b, (S(b) - S(Y))/(S(b) - S(a)) with
    the scale function S' = 1/pi.
    """
    width = np.gradient(total_tokens)
    step = np.where(two, width**2 / np.maximum(weight, 1e-300), 0.0)
    ahead = np.cumsum(step[::-1])[::-1] - 0.5 * step
    return np.where(two, ahead / max(float(step.sum()), 1e-300), 1.0)


def feedback_point(
    law: LaneLaw, concurrency: int, capacity_tokens: float, service: ServiceModel
) -> FeedbackPoint:
    """Return the hit rate of C lanes on a prefill server whose work depends on the hits.

    Parameters
    ----------
    law : LaneLaw
        One lane, gaps already capped.
    concurrency : int
        Lanes C [1].
    capacity_tokens : float
        Cache B [tokens].
    service : ServiceModel
        The prefill server.

    Notes
    -----
    For each composition Y the fixed point of H -> queue -> cycle time -> H is bracketed on a
    grid and bisected. Where it has two stable roots the queue stays on its branch until Y has
    wandered to where the branch ends (`upper_branch_share`). The average is over turns. No
    constant is fitted.
    Approximate for: gaps that follow the context; measured mean error 0.002 over all points and
    0.01 to 0.02 between 10 and 90% of the ceiling.
    """
    decode_s = law.output_mean * service.output_token_s
    if concurrency == 1:
        found = float((law.share * np.minimum(law.prefix_tokens, capacity_tokens)).sum())
        hit = found / law.context_mean
        prefill_s = law.request_mean * (1.0 - hit) / service.prefill_tokens_per_s
        return FeedbackPoint(
            hit_rate=hit, cold_hit_rate=hit, warm_hit_rate=hit,
            requests_per_s=1.0 / (law.gap_mean_s + decode_s + prefill_s),
            total_tokens=np.array([law.context_mean]), weight=np.ones(1),
            conditional_hit_rate=np.array([hit]),
        )  # fmt: skip
    mix = composition(law, concurrency)
    relative = mix.context_mean / law.context_mean
    variance = (law.context_square - law.context_mean**2) * relative**2
    covariance = law.context_gap_s - law.context_mean * law.gap_mean_s
    covariance += service.output_token_s * (law.context_output - law.context_mean * law.output_mean)

    def queue(hit: FloatArray) -> QueuePoint:
        work = law.request_mean * relative * (1.0 - hit) / service.prefill_tokens_per_s
        return pinned_queue(
            concurrency, work, decode_s, law.gap_mean_s, mix.context_mean, variance, capacity_tokens
        )

    def excess(hit: FloatArray) -> FloatArray:
        found = _found_tokens(
            law, mix, concurrency, capacity_tokens, queue(hit).cycle_s, covariance
        )
        return found / mix.context_mean - hit

    nodes = mix.weight.size
    scan = np.array([excess(np.full(nodes, level)) for level in _SCAN])
    scan[0], scan[-1] = np.maximum(scan[0], 0.0), -1.0
    crossing = (scan[:-1] >= 0) & (scan[1:] < 0)
    cold = crossing.argmax(axis=0)
    warm = crossing.shape[0] - 1 - crossing[::-1].argmax(axis=0)

    def root(cell: npt.NDArray[np.intp]) -> FloatArray:
        low, high = _SCAN[cell], _SCAN[cell + 1]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            above = excess(middle) > 0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        # One more step of the map itself is closer than the middle of the bracket.
        middle = 0.5 * (low + high)
        return np.clip(middle + excess(middle), 0.0, _SCAN[-1])

    at_cold = root(cold)
    at_warm = at_cold if np.array_equal(cold, warm) else root(warm)
    upper = upper_branch_share(mix.total_tokens, mix.weight, at_warm > at_cold + 1e-3)
    settled = upper * at_warm + (1.0 - upper) * at_cold
    tokens = mix.weight * mix.context_mean

    def averaged(hit: FloatArray) -> float:
        return min(float((tokens * hit).sum() / tokens.sum()), law.theoretical_hit_rate)

    cycle_s = upper * queue(at_warm).cycle_s + (1.0 - upper) * queue(at_cold).cycle_s
    return FeedbackPoint(
        hit_rate=averaged(settled),
        cold_hit_rate=averaged(at_cold),
        warm_hit_rate=averaged(at_warm),
        requests_per_s=concurrency / float((mix.weight * cycle_s).sum() / mix.weight.sum()),
        total_tokens=mix.total_tokens,
        weight=mix.weight,
        conditional_hit_rate=settled,
    )
