"""A fleet: how many replicas of which node serve which class, hour by hour, at least cost.

Sessions stay where their cache is, so a replica serves one class, and replicas are independent
copies: rates and costs add, and the problem is a mixed-integer linear programme.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InfeasibleError, SpecError
from .planner import optimize

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOffer:
    """One kind of replica: what it costs, how many there are, and what it carries of each class.

    Parameters
    ----------
    name : str
        Node and layout.
    usd_per_hour : float
        Price of one replica for an hour [USD/h].
    available : int
        Replicas that can be had [1].
    requests_per_s : dict of str to float
        Rate by class within its SLO; absent where it cannot serve the class [requests/s].
    """

    name: str
    usd_per_hour: float
    available: int
    requests_per_s: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Requests of one class over the hours of a day.

    Parameters
    ----------
    name : str
        Class of sessions.
    requests_per_s : tuple of float
        Mean rate in each hour [requests/s].
    """

    name: str
    requests_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """Replicas by offer, class and hour, and the proof that no fewer dollars do.

    Parameters
    ----------
    offers, classes : tuple of str
        Names along the axes.
    running : ndarray, shape (offers, classes, hours)
        Replicas that run [1].
    held : ndarray, shape (offers,)
        Replicas that are paid for all day; the most that run at once where hours are bought [1].
    usd_per_day : float
        Cost of all hours [USD].
    lower_bound_usd_per_day : float
        What the solver proved no fleet falls under [USD].
    relaxed_usd_per_day : float
        Cost with fractions of replicas allowed [USD].
    usd_per_hour : tuple of float
        Cost of each hour [USD/h].
    """

    offers: tuple[str, ...]
    classes: tuple[str, ...]
    running: IntArray
    held: IntArray
    usd_per_day: float
    lower_bound_usd_per_day: float
    relaxed_usd_per_day: float
    usd_per_hour: tuple[float, ...]

    @property
    def relative_gap(self) -> float:
        """Cost over the solver's bound, less one [1]."""
        return self.usd_per_day / self.lower_bound_usd_per_day - 1.0

    @property
    def integrality_gap(self) -> float:
        """Cost over the cost with fractions of replicas, less one [1]."""
        return self.usd_per_day / self.relaxed_usd_per_day - 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "offers": list(self.offers),
            "classes": list(self.classes),
            "running": self.running.tolist(),
            "held": self.held.tolist(),
            "replicas_by_hour": self.running.sum(axis=(0, 1)).tolist(),
            "usd_per_day": self.usd_per_day,
            "usd_per_hour": list(self.usd_per_hour),
            "lower_bound_usd_per_day": self.lower_bound_usd_per_day,
            "relative_gap": self.relative_gap,
            "relaxed_usd_per_day": self.relaxed_usd_per_day,
            "integrality_gap": self.integrality_gap,
        }


def fleet(
    offers: Sequence[ReplicaOffer],
    demands: Sequence[Demand],
    *,
    headroom: float = 0.9,
    spare_replicas: int = 0,
    billing: str = "hourly",
    relative_gap: float = 1e-9,
) -> FleetPlan:
    """Return the cheapest mix of replicas that carries every class in every hour.

    Parameters
    ----------
    offers : sequence of ReplicaOffer
        What can be had.
    demands : sequence of Demand
        What must be carried; all over the same hours.
    headroom : float
        Share of a replica's rate that is planned on [1].
    spare_replicas : int
        Replicas that each class has beyond its demand, of the kinds it uses (N + k): the class
        is carried with its k best replicas gone [1].
    billing : {"hourly", "daily"}
        Pay for the replicas that run, or for the most that ever run, all day.
    relative_gap : float
        Where the solver may stop [1].

    Raises
    ------
    SpecError
        If the inputs do not fit together.
    InfeasibleError
        If availability is too small; says for which class, when, and how much is missing.

    Notes
    -----
    ``min sum p_o n_okt`` subject to ``h sum_o x_ok n_okt >= d_kt + k h max_o x_ok`` and
    ``sum_k n_okt <= a_o``, n whole. The spares are counted at the best rate of the class, which
    covers the loss of any k replicas.
    """
    rates, prices, available, load = _arrays(offers, demands)
    if not 0 < headroom <= 1 or spare_replicas < 0 or billing not in ("hourly", "daily"):
        raise SpecError("fleet: headroom in (0, 1], spares >= 0, billing hourly or daily.")
    load = load / headroom + spare_replicas * rates.max(axis=0)[:, None]
    hours = load.shape[1]
    # Hours bought one by one do not touch each other; held all day they share what is held.
    spans = [slice(t, t + 1) for t in range(hours)] if billing == "hourly" else [slice(0, hours)]
    counts = np.zeros((len(offers), len(demands), hours), dtype=np.int64)
    bound = relaxed = 0.0
    for span in spans:
        solved = _programme(rates, prices, available, load[:, span], relative_gap)
        if solved is None:
            raise _short(offers, demands, rates, available, load)
        counts[:, :, span], proved, loose = solved
        bound, relaxed = bound + proved, relaxed + loose
    most = counts.sum(axis=1).max(axis=1)
    cost = counts.sum(axis=1).T @ prices if billing == "hourly" else np.full(hours, prices @ most)
    return FleetPlan(
        offers=tuple(o.name for o in offers),
        classes=tuple(d.name for d in demands),
        running=counts,
        held=most,
        usd_per_day=float(cost.sum()),
        lower_bound_usd_per_day=min(bound, float(cost.sum())),
        relaxed_usd_per_day=relaxed,
        usd_per_hour=tuple(float(c) for c in cost),
    )


def _programme(
    rates: FloatArray,
    prices: FloatArray,
    available: FloatArray,
    load: FloatArray,
    relative_gap: float,
) -> tuple[IntArray, float, float] | None:
    """Counts (offer, class, hour), proved bound, relaxed cost; None where there is no fleet."""
    import cvxpy as cp

    (kinds, classes), hours = rates.shape, load.shape[1]
    solved = []
    for integer in (False, True):
        running = [cp.Variable((kinds, hours), integer=integer) for _ in range(classes)]
        held = cp.Variable(kinds, integer=integer)
        rules = [n >= 0 for n in running]
        rules += [n[rates[:, k] == 0] == 0 for k, n in enumerate(running) if not rates[:, k].all()]
        rules += [rates[:, k] @ n >= load[k] for k, n in enumerate(running)]
        rules += [sum(running[1:], running[0]) <= held[:, None], held <= available]
        problem = cp.Problem(cp.Minimize(hours * (prices @ held)), rules)
        options = {"mip_rel_gap": relative_gap} if integer else {}
        problem.solve(solver=cp.HIGHS, output_flag=False, **options)
        if problem.status not in ("optimal", "optimal_inaccurate"):
            return None
        solved.append(problem)
    counts = np.stack([np.rint(n.value) for n in running], axis=1).astype(np.int64)
    relaxed, whole = float(solved[0].value), float(solved[1].value)
    stated = getattr(solved[1].solver_stats.extra_stats, "mip_dual_bound", None)
    proved = whole / (1.0 + relative_gap) if stated is None else float(stated)
    return counts, max(proved, relaxed), relaxed


def _arrays(
    offers: Sequence[ReplicaOffer], demands: Sequence[Demand]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    if not offers or not demands or len({len(d.requests_per_s) for d in demands}) != 1:
        raise SpecError("fleet: give offers, and demands over the same number of hours.")
    rates = np.asarray([[o.requests_per_s.get(d.name, 0.0) for d in demands] for o in offers])
    prices = np.asarray([o.usd_per_hour for o in offers])
    available = np.asarray([float(o.available) for o in offers])
    load = np.asarray([d.requests_per_s for d in demands])
    if (rates < 0).any() or (prices <= 0).any() or (available < 0).any() or (load < 0).any():
        raise SpecError("fleet: rates, availability and demands must be >= 0, prices positive.")
    for k, demand in enumerate(demands):
        if not rates[:, k].any() and load[k].any():
            raise InfeasibleError(
                f"no offer serves class {demand.name}.",
                details={"binding": [demand.name], "relaxations": []},
            )
    return rates, prices, available, load


def _short(
    offers: Sequence[ReplicaOffer],
    demands: Sequence[Demand],
    rates: FloatArray,
    available: FloatArray,
    load: FloatArray,
) -> InfeasibleError:
    """What is missing in the fullest hour, and the offer of which the fewest more are needed."""
    hour = int(load.sum(axis=0).argmax())
    most = [int(k) for k in np.argsort(load[:, hour])[::-1]]
    best = rates.max(axis=1) > 0
    need = float(sum(load[k, hour] / rates[:, k].max() for k in most))
    have = float(available[best].sum())
    cheapest = min(
        (o for o in offers if o.requests_per_s), key=lambda o: o.usd_per_hour, default=offers[0]
    )
    more = max(math.ceil(need - have), 1)
    return InfeasibleError(
        f"availability binds in hour {hour}: about {need:.1f} replicas of the best kinds are "
        f"needed and {have:.0f} can be had. Cheapest relaxation: {more} more of {cheapest.name}.",
        details={
            "binding": ["available"],
            "hour": hour,
            "largest_class": demands[most[0]].name,
            "relaxations": [{"change": f"{more} more of {cheapest.name}", "key": "available"}],
        },
    )


def replica_offers(
    scenarios: Mapping[str, Any],
    nodes: Mapping[str, int],
    *,
    slo: Mapping[str, float] | None = None,
    level: str = "fast",
) -> list[ReplicaOffer]:
    """Return one offer per node: its best plan for every class of sessions.

    Parameters
    ----------
    scenarios : mapping of str to Scenario
        Class name to what it asks for; the node is replaced.
    nodes : mapping of str to int
        Node name to how many can be had [1].
    slo : mapping, optional
        Bounds that every class keeps.
    level : str
        Queue model.
    """
    from dataclasses import replace

    offers = []
    for node, available in nodes.items():
        rates: dict[str, float] = {}
        price = 0.0
        for name, scenario in scenarios.items():
            try:
                plan = optimize(replace(scenario, node=node, tp=None), slo=slo or (), level=level)
            except InfeasibleError:
                continue
            rates[name] = plan.run.requests_per_s
            price = max(price, plan.replica_usd_per_hour)
        if rates:
            offers.append(
                ReplicaOffer(
                    name=node, usd_per_hour=price, available=available, requests_per_s=rates
                )
            )
    return offers
