"""Sensitivity of a plan: elasticities, shadow prices in money, and the bottleneck they name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import CapmodelError
from ..scenario import ResolvedScenario
from ..service.transfer import tier_transfer
from ..units import GIB, SECONDS_PER_HOUR
from .branch_and_bound import search
from .configuration import Configuration
from .evaluation import Evaluator, Rules
from .objective import revenue_usd

if TYPE_CHECKING:
    from .plan import Plan

# A changed scenario and DRAM [bytes], and by which factor the named input really changed.
Change = Callable[[ResolvedScenario, float, float], tuple[ResolvedScenario, float, float]]
LINK = "tier_bytes_per_s"

STEP = 0.04
HBM_STEP = 0.004
# HBM per GPU that a re-optimised shadow price is an average over [bytes].
HBM_ADDED = 8 * GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Local and re-optimised sensitivities of a plan.

    Parameters
    ----------
    elasticities : dict of str to {"throughput", "cost"}
        Percent change per percent of an input, sessions and DRAM held [1].
    shadow_prices : dict of str to dict
        What more of a resource is worth per node-hour, by unit [USD/h].
    bottleneck : str
        The resource whose relative increase raises throughput most.
    """

    elasticities: dict[str, dict[str, float]]
    shadow_prices: dict[str, dict[str, Any]]
    bottleneck: str


def _part(scenario: ResolvedScenario, **changes: Any) -> ResolvedScenario:
    node = scenario.node
    return replace(scenario, node=replace(node, accelerator=replace(node.accelerator, **changes)))


def _attribute(name: str) -> Change:
    def change(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
        return _part(s, **{name: getattr(s.node.accelerator, name) * f}), dram, f

    return change


def _flop(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
    rates = {path: rate * f for path, rate in s.node.accelerator.flop_per_s.items()}
    return _part(s, flop_per_s=rates), dram, f


def _unchanged(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
    return s, dram, f


def _dram(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
    return s, dram * f, f


def _context(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
    mean = s.workload.request_tokens_mean * f
    shared = s.workload.shared_prefix_tokens * f
    workload = s.workload.with_overrides(context_tokens_mean=mean, shared_prefix_tokens=shared)
    return replace(s, workload=workload), dram, f


def _think(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
    law = s.workload.think_time
    longer = law.scaled(f).capped(law.cap * f)
    return replace(s, workload=replace(s.workload, think_time=longer)), dram, f


def _ceiling(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
    """Scales the misses of an infinite cache down by f; reports the factor on the hits."""
    hits = s.workload.theoretical_hit_rate
    if hits <= 0 or 1.0 - (1.0 - hits) / f <= 0:
        return s, dram, 1.0
    after = 1.0 - (1.0 - hits) / f
    workload = replace(s.workload, theoretical_hit_rate=after)
    return replace(s, workload=workload), dram, after / hits


def _price(s: ResolvedScenario, dram: float, f: float) -> tuple[ResolvedScenario, float, float]:
    assert s.gpu_hour_usd is not None  # checked where a search starts
    return replace(s, gpu_hour_usd=s.gpu_hour_usd * f), dram, f


# name -> (change, half step in log, True for a resource one could buy more of)
INPUTS: dict[str, tuple[Change, float, bool]] = {
    "hbm_bytes": (_attribute("hbm_bytes"), HBM_STEP, True),
    "hbm_bytes_per_s": (_attribute("hbm_bytes_per_s"), STEP, True),
    "flop_per_s": (_flop, STEP, True),
    "scale_up_bytes_per_s": (_attribute("scale_up_bytes_per_s"), STEP, True),
    LINK: (_unchanged, STEP, True),
    "dram_bytes": (_dram, STEP, True),
    "context_tokens": (_context, STEP, False),
    "think_time": (_think, STEP, False),
    "hit_ceiling": (_ceiling, STEP, False),
    "gpu_hour_usd": (_price, STEP, False),
}


def sensitivity(plan: Plan) -> Sensitivity:
    """Return elasticities and shadow prices of a plan.

    Notes
    -----
    Central differences of the solved model in the logarithm of each input, with sessions and DRAM
    held: by the envelope theorem these are the derivatives of the optimum while no integer moves.
    A shadow price is the rent at which the cost per token stays: ``p = P e / n`` with rent P,
    elasticity e and n units. For HBM a second one lets the plan move (`reoptimized`): it is the
    one to buy by, since more HBM is worth most when it lets more sessions in.
    """
    base = plan.configuration.scenario
    elasticities = {}
    for name, (change, step, _) in INPUTS.items():
        found = _elasticity(plan, name, change, step)
        if found is not None:
            elasticities[name] = found
    resources = [n for n, (_, _, bought) in INPUTS.items() if bought and n in elasticities]
    strongest = max(resources, key=lambda n: elasticities[n]["throughput"], default="none")
    return Sensitivity(
        elasticities=elasticities,
        shadow_prices=_shadow_prices(plan, base, elasticities),
        bottleneck=strongest,
    )


def _elasticity(plan: Plan, name: str, change: Change, step: float) -> dict[str, float] | None:
    logs = []
    for factor in (math.exp(-step), math.exp(step)):
        scenario, dram, moved = change(plan.configuration.scenario, plan.dram_bytes, factor)
        if name in (LINK, "dram_bytes") and plan.dram_bytes <= 0:
            return None
        link = factor if name == LINK else 1.0
        try:
            rate = _rate(plan, scenario, dram, link)
        except CapmodelError:
            return None
        if rate <= 0 or moved == 1.0:
            return None
        assert scenario.gpu_hour_usd is not None and plan.configuration.scenario.gpu_hour_usd
        price = scenario.gpu_hour_usd / plan.configuration.scenario.gpu_hour_usd
        logs.append((math.log(moved), math.log(rate), math.log(price)))
    (low, rate_low, price_low), (high, rate_high, price_high) = logs
    throughput = (rate_high - rate_low) / (high - low)
    return {
        "throughput": throughput,
        "cost": (price_high - price_low) / (high - low) - throughput,
    }


def _rate(plan: Plan, scenario: ResolvedScenario, dram_bytes: float, link: float) -> float:
    """Rate of the plan's sessions in a changed scenario, its tier's link `link` times as fast."""
    configuration = replace(plan.configuration, scenario=scenario)
    if link != 1.0:
        with_tier = configuration.with_dram(dram_bytes)
        moved = tier_transfer(with_tier.model, with_tier.node, with_tier.deployment)
        assert with_tier.deployment.offload is not None  # the caller checked the size
        faster = replace(with_tier.deployment.offload, bytes_per_s=moved.load_bytes_per_s * link)
        configuration = replace(configuration, tier=faster)
    free = Rules(hit_share=0.0)
    evaluator = Evaluator(configuration, free, plan.question.level)
    return evaluator.point(plan.concurrency, dram_bytes).requests_per_s


def _shadow_prices(
    plan: Plan, base: ResolvedScenario, elasticities: dict[str, dict[str, float]]
) -> dict[str, dict[str, Any]]:
    nodes = base.node.nodes
    rent = plan.replica_usd_per_hour / nodes
    sales = None
    if base.tariff is not None:
        each = revenue_usd(base, plan.found.evaluated.hit_rate)
        sales = plan.run.requests_per_s * each * SECONDS_PER_HOUR / nodes
    units = {
        "hbm_bytes": ("GiB of HBM per GPU", base.node.accelerator.hbm_bytes / GIB),
        "dram_bytes": ("GiB of DRAM per node", plan.dram_bytes / GIB),
        "hbm_bytes_per_s": ("percent of HBM bandwidth", 100.0),
        "flop_per_s": ("percent of FLOP rate", 100.0),
        "scale_up_bytes_per_s": ("percent of the scale-up link", 100.0),
        LINK: ("percent of the tier's link rate", 100.0),
    }
    prices: dict[str, dict[str, Any]] = {}
    for name, (unit, amount) in units.items():
        if name not in elasticities or amount <= 0:
            continue
        share = elasticities[name]["throughput"] / amount
        prices[name] = {
            "unit": unit,
            "usd_per_node_hour": rent * share,
            "revenue_usd_per_node_hour": None if sales is None else sales * share,
        }
    if "hbm_bytes" in prices:
        prices["hbm_bytes"]["reoptimized_usd_per_node_hour"] = _reoptimized_hbm(plan, rent)
    return prices


def _reoptimized_hbm(plan: Plan, rent: float) -> float | None:
    """Worth of a GiB of HBM per GPU where the plan may move, averaged over `HBM_ADDED` [USD/h]."""
    base = plan.configuration.scenario
    more = base.node.accelerator.hbm_bytes + HBM_ADDED
    configuration: Configuration = replace(
        plan.configuration,
        scenario=_part(base, hbm_bytes=more),
        dram_sizes_bytes=(plan.dram_bytes,),
    )
    question = plan.question
    found = search([configuration], question.objective, question.rules, question.level)
    if found.best is None:
        return None
    return rent * (plan.found.value / found.best.value - 1.0) / (HBM_ADDED / GIB)
