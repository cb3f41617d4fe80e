"""What offload memory is worth to a plan, in money per node-hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..units import GB, SECONDS_PER_HOUR
from .objective import dram_usd_per_hour, revenue_usd

if TYPE_CHECKING:
    from .plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class DramWorth:
    """The plan against the best one without offload, on the same configuration.

    Parameters
    ----------
    without_concurrency : int or None
        Sessions of the best plan without offload; None where there is none [1].
    without_usd_per_mtok : float or None
        Its cost [USD per 1e6 tokens].
    without_margin : float or None
        Its margin under the scenario's billing rule [1].
    usd_per_node_hour : float or None
        Rent for the DRAM at which both plans cost the same per token [USD/h].
    usd_per_gb_hour : float or None
        The same per GB [USD per GB-hour].
    profit_usd_per_node_hour : float or None
        Profit that the DRAM adds if every session offered is sold, its own price paid [USD/h].
    price_usd_per_node_hour : float
        What the DRAM is priced at on top of the rent [USD/h].
    """

    without_concurrency: int | None
    without_usd_per_mtok: float | None
    without_margin: float | None
    usd_per_node_hour: float | None
    usd_per_gb_hour: float | None
    profit_usd_per_node_hour: float | None
    price_usd_per_node_hour: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def dram_worth(plan: Plan) -> DramWorth | None:
    """Return what the plan's DRAM is worth, None where it has none.

    Notes
    -----
    The indifference rent w solves ``(P + w)/X = P/X_0``: ``w = P (X/X_0 - 1)``, P a node's rent.
    """
    from .planner import without_dram

    if plan.dram_bytes <= 0:
        return None
    scenario = plan.configuration.scenario
    nodes = scenario.node.nodes
    own_price = dram_usd_per_hour(scenario, plan.dram_bytes) / nodes
    bare = without_dram(plan)
    if bare is None:
        return DramWorth(
            without_concurrency=None,
            without_usd_per_mtok=None,
            without_margin=None,
            usd_per_node_hour=None,
            usd_per_gb_hour=None,
            profit_usd_per_node_hour=None,
            price_usd_per_node_hour=own_price,
        )
    rate, before = plan.run.requests_per_s, bare.run.requests_per_s
    worth = bare.replica_usd_per_hour / nodes * (rate / before - 1.0)
    profit = None
    if scenario.tariff is not None:
        gained = rate * revenue_usd(scenario, plan.found.evaluated.hit_rate)
        lost = before * revenue_usd(scenario, bare.found.evaluated.hit_rate)
        profit = (gained - lost) * SECONDS_PER_HOUR / nodes - own_price
    return DramWorth(
        without_concurrency=bare.concurrency,
        without_usd_per_mtok=bare.objective_usd_per_mtok,
        without_margin=bare.run.cost.margin.get(scenario.bill_cached),
        usd_per_node_hour=worth,
        usd_per_gb_hour=worth / (plan.dram_bytes / GB),
        profit_usd_per_node_hour=profit,
        price_usd_per_node_hour=own_price,
    )
