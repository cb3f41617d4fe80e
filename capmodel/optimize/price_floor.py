"""Price floors: which tariff a plan sustains, and what hardware a tariff and a margin ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import InfeasibleError, SpecError
from ..scenario import ResolvedScenario
from ..spec.prices import Tariff
from ..units import GIB, SECONDS_PER_HOUR
from .branch_and_bound import search
from .objective import revenue_usd

if TYPE_CHECKING:
    from .plan import Plan

LARGEST_FACTOR = 16.0
BISECTIONS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFloor:
    """The smallest multiple of a tariff at which a plan keeps a margin.

    Parameters
    ----------
    margin : float
        Share of revenue that is kept [1].
    multiple : float
        Factor on every price of the tariff [1].
    tariff : Tariff
        The tariff times the factor.
    usd_per_mtok : float
        Cost of the plan [USD per 1e6 tokens].
    breakeven_requests_per_s : float
        Rate of one replica that pays for it at the tariff itself [requests/s].
    """

    margin: float
    multiple: float
    tariff: Tariff
    usd_per_mtok: float
    breakeven_requests_per_s: float


def price_floor(plan: Plan, margin: float = 0.0) -> PriceFloor:
    """Return the price floor that a plan's hardware sustains, prices kept in proportion.

    Notes
    -----
    ``k R (1 - margin) = cost per request``: revenue is linear in the tariff.
    """
    scenario = plan.run.scenario
    if scenario.tariff is None:
        raise SpecError("a price floor needs a tariff to scale; give --price.", field="price")
    if not margin < 1:
        raise SpecError("margin must be under 1.", field="margin")
    each = revenue_usd(scenario, plan.found.evaluated.hit_rate)
    hourly = plan.usd_per_hour
    carried = plan.question.objective.demand_requests_per_s
    rate = plan.run.requests_per_s * plan.replicas if carried is None else carried
    multiple = hourly / (SECONDS_PER_HOUR * rate) / each / (1.0 - margin)
    tariff = scenario.tariff
    return PriceFloor(
        margin=margin,
        multiple=multiple,
        tariff=replace(
            tariff,
            input_usd_per_mtok=tariff.input_usd_per_mtok * multiple,
            cached_input_usd_per_mtok=tariff.cached_input_usd_per_mtok * multiple,
            output_usd_per_mtok=tariff.output_usd_per_mtok * multiple,
        ),
        usd_per_mtok=plan.objective_usd_per_mtok,
        breakeven_requests_per_s=plan.replica_usd_per_hour / SECONDS_PER_HOUR / each,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What would have to change, each alone, for a tariff to leave a margin; None: not by it alone.

    Parameters
    ----------
    margin, margin_now : float
        Asked for, and that of the plan [1].
    gpu_hour_usd : float
        Rent per GPU-hour at which the plan as it stands has the margin [USD].
    rate_factor : float
        Factor on the rate of a replica that gives it [1].
    hbm_gib_per_gpu : float or None
        HBM at which the best plan has it, everything else as it is [GiB].
    by_price_basis : dict of str to float
        Margin of the plan at every price of the catalog, rental and own [1].
    """

    margin: float
    margin_now: float
    gpu_hour_usd: float
    rate_factor: float
    hbm_gib_per_gpu: float | None
    by_price_basis: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def requirement(plan: Plan, margin: float = 0.5) -> Requirement:
    """Return what hardware or rent would make the scenario's tariff leave a margin.

    Notes
    -----
    Rent and rate follow in closed form from ``margin = 1 - cost/(X R)``; HBM by bisection over
    re-optimised plans, whose margin does not fall with HBM.
    """
    scenario = plan.configuration.scenario
    assert scenario.gpu_hour_usd is not None  # checked where a search starts
    each = revenue_usd(scenario, plan.found.evaluated.hit_rate)
    revenue = plan.run.requests_per_s * each * SECONDS_PER_HOUR
    hourly, gpus = plan.replica_usd_per_hour, scenario.node.total_gpus
    dram = hourly - gpus * scenario.gpu_hour_usd
    wanted = revenue * (1.0 - margin)
    return Requirement(
        margin=margin,
        margin_now=1.0 - hourly / revenue,
        gpu_hour_usd=max((wanted - dram) / gpus, 0.0),
        rate_factor=hourly / wanted,
        hbm_gib_per_gpu=_hbm_for(plan, margin),
        by_price_basis={
            basis: 1.0 - (gpus * price + dram) / revenue
            for basis, price in sorted(scenario.node.accelerator.gpu_hour_usd.items())
        },
    )


def _hbm_for(plan: Plan, margin: float) -> float | None:
    scenario = plan.configuration.scenario
    now = scenario.node.accelerator.hbm_bytes

    def enough(factor: float) -> bool:
        return _margin_with(plan, scenario, now * factor) >= margin

    if not enough(LARGEST_FACTOR):
        return None
    low, high = 0.25, LARGEST_FACTOR
    for _ in range(BISECTIONS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if enough(middle) else (middle, high)
    return now * high / GIB


def _margin_with(plan: Plan, scenario: ResolvedScenario, hbm_bytes: float) -> float:
    """Margin of the best plan with other HBM and the plan's DRAM, minus infinity where none is."""
    part = replace(scenario.node.accelerator, hbm_bytes=hbm_bytes)
    other = replace(scenario, node=replace(scenario.node, accelerator=part))
    configuration = replace(plan.configuration, scenario=other, dram_sizes_bytes=(plan.dram_bytes,))
    question = plan.question
    goal = replace(question.objective, kind="margin", demand_requests_per_s=None, headroom=1.0)
    try:
        found = search([configuration], goal, question.rules, question.level)
    except InfeasibleError:
        return float("-inf")
    return float("-inf") if found.best is None else 1.0 - found.best.value
