"""The surface of a lane law: any closed form, shared prefix and checkpoints included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from ..spec.workload import Workload
from .characteristic_time import (
    finite_population_hit_rate,
    fluid_hit_rate,
    mean_field_hit_rate,
)
from .feedback import feedback_point
from .granularity import checkpointed, state_room, with_shared_prefix
from .lane_law import LaneLaw
from .moments import lane_law_of_moments, moments_of_workload
from .service_model import ServiceModel
from .stack_distance import Checkpoints

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Hit rates over concurrency and capacity.

    Parameters
    ----------
    hit_rate, cold, warm : ndarray, shape (concurrencies, capacities)
        Long run, and the two bounds where there are two operating points [1].
    theoretical_hit_rate : float
        Ceiling [1].
    """

    hit_rate: FloatArray
    cold: FloatArray
    warm: FloatArray
    theoretical_hit_rate: float

    def mapped(self, change: Callable[[FloatArray], FloatArray], ceiling: float) -> Surface:
        """Return the surface with a change of every hit rate, under a new ceiling."""
        return Surface(
            hit_rate=change(self.hit_rate), cold=change(self.cold), warm=change(self.warm),
            theoretical_hit_rate=ceiling,
        )  # fmt: skip


def closed_form_surface(
    law: LaneLaw,
    concurrencies: Sequence[int],
    capacities_tokens: Sequence[float],
    method: str,
    service: ServiceModel,
) -> Surface:
    """Return the surface of a closed form; methods as in `hit_rate_curve`."""
    ceiling = law.theoretical_hit_rate
    if service.has_feedback:
        if method not in ("finite-population", "moments"):
            raise SpecError(
                f"{method} has no queue feedback; use finite-population, moments or exact.",
                field="method",
            )
        points = [
            [feedback_point(law, int(c), float(b), service) for b in capacities_tokens]
            for c in concurrencies
        ]
        return Surface(
            hit_rate=np.array([[p.hit_rate for p in row] for row in points]),
            cold=np.array([[p.cold_hit_rate for p in row] for row in points]),
            warm=np.array([[p.warm_hit_rate for p in row] for row in points]),
            theoretical_hit_rate=ceiling,
        )
    lanes = np.asarray(concurrencies, dtype=np.float64)[:, None]
    room = np.asarray(capacities_tokens, dtype=np.float64)[None, :]
    if method == "fluid":
        rates = fluid_hit_rate(law, lanes, room)
    elif method == "mean-field":
        rates = mean_field_hit_rate(law, lanes, room, service.kind)
    else:
        rates = finite_population_hit_rate(law, lanes, room, service.kind)
    return Surface(hit_rate=rates, cold=rates, warm=rates, theoretical_hit_rate=ceiling)


def law_surface(
    law: LaneLaw, concurrencies: Sequence[int], capacities_tokens: Sequence[float], method: str,
    service: ServiceModel, checkpoints: Checkpoints | None = None,
    shared_prefix_tokens: float = 0.0,
) -> Surface:  # fmt: skip
    """Return the surface over whole prompts, the law being that of their private parts."""
    inside = [max(room - shared_prefix_tokens, 0.0) for room in capacities_tokens]
    if checkpoints is not None:
        inside = [state_room(room, law, checkpoints.state_tokens) for room in inside]
        law = checkpointed(law, checkpoints.every_tokens)
    surface = closed_form_surface(law, concurrencies, inside, method, service)
    if shared_prefix_tokens <= 0:
        return surface

    def whole(rates: FloatArray) -> FloatArray:
        return np.array(
            [
                [
                    with_shared_prefix(h, law.request_mean, shared_prefix_tokens, room)
                    for h, room in zip(row, capacities_tokens, strict=True)
                ]
                for row in rates
            ]
        )

    ceiling = with_shared_prefix(
        law.theoretical_hit_rate, law.request_mean, shared_prefix_tokens, math.inf
    )
    return surface.mapped(whole, ceiling)


def workload_surface(
    workload: Workload, concurrencies: Sequence[int], capacities_tokens: Sequence[float],
    method: str, service: ServiceModel, checkpoints: Checkpoints | None = None,
    service_mean_s: float = 0.0,
) -> Surface:  # fmt: skip
    """Return the surface of a workload's moments, its shared prefix included."""
    shared = workload.shared_prefix_tokens
    moments = moments_of_workload(workload, service_mean_s)
    if shared > 0:
        request = max(workload.request_tokens_mean - shared, 1.0)
        found = workload.theoretical_hit_rate * workload.request_tokens_mean - shared
        moments = replace(
            moments,
            context_mean=max(moments.context_mean - shared, 1.0),
            request_mean=request,
            theoretical_hit_rate=min(max(found / request, 0.0), 0.999),
        )
    law = lane_law_of_moments(moments)
    return law_surface(law, concurrencies, capacities_tokens, method, service, checkpoints, shared)
