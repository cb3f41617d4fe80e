"""The plan: what to run, what it costs, what it is worth, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..answer import estimate
from ..pipeline import Run
from ..results import Estimate
from ..units import MILLION, SECONDS_PER_HOUR
from . import binding, frontier, robustness, sensitivity, worth
from .branch_and_bound import Found, Search
from .certificate import Certificate, Question
from .configuration import Configuration
from .evaluation import Evaluated
from .evidence import point_value
from .objective import hourly_usd, tokens_per_request
from .price_floor import price_floor


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The best plan and everything that is said about it; costly parts are made when asked for.

    Parameters
    ----------
    search : Search
        What was looked at.
    found : Found
        The chosen point.
    certificate : Certificate
        The proof.
    question : Question
        What was asked.
    """

    search: Search
    found: Found
    certificate: Certificate
    question: Question

    @property
    def concurrency(self) -> int:
        """Live sessions of each replica [1]."""
        return self.found.evaluated.concurrency

    @property
    def dram_bytes(self) -> float:
        """Offload tier per node [bytes]."""
        return self.found.evaluated.dram_bytes

    @property
    def configuration(self) -> Configuration:
        """Node, layout, precision and draft."""
        return self.search.configurations[self.found.configuration]

    @property
    def run(self) -> Run:
        """The solved stages of one replica."""
        run = self.found.evaluated.run
        assert run is not None  # a plan is a point that keeps the rules, so it was solved
        return run

    @property
    def replicas(self) -> int:
        """Replicas that carry the demand, spares included; 1 without demand [1]."""
        return self.question.objective.replicas(self.run.requests_per_s)

    @property
    def usd_per_hour(self) -> float:
        """Price of all replicas [USD/h]."""
        return self.replicas * self.replica_usd_per_hour

    @property
    def replica_usd_per_hour(self) -> float:
        """Price of one replica [USD/h]."""
        return hourly_usd(self.configuration.scenario, self.dram_bytes)

    @property
    def objective_usd_per_mtok(self) -> float:
        """Cost of the plan over the tokens it carries [USD per 1e6 tokens]."""
        carried = self.question.objective.demand_requests_per_s
        rate = self.run.requests_per_s if carried is None else carried
        tokens = rate * SECONDS_PER_HOUR * tokens_per_request(self.configuration.scenario)
        hourly = self.replica_usd_per_hour if carried is None else self.usd_per_hour
        return hourly / tokens * MILLION

    @cached_property
    def best(self) -> Estimate:
        """The whole estimate at the chosen point."""
        return estimate(self.run.scenario, self.concurrency, level=self.question.level)

    @cached_property
    def runner_up(self) -> tuple[Configuration, Evaluated, float] | None:
        """The best other decision: its neighbours in C, and the best of every configuration."""
        made = self.search.evaluators[self.found.configuration]
        for other in (self.concurrency - 1, self.concurrency + 1):
            if 1 <= other <= made.largest_concurrency:
                made.point(other, self.dram_bytes)
        rows = []
        for index, evaluator in self.search.evaluators.items():
            for point in evaluator.evaluated.values():
                own = index == self.found.configuration
                if point.broken or (own and point.concurrency == self.concurrency):
                    continue
                if own and point.dram_bytes != self.dram_bytes:
                    continue
                value = point_value(self.question.objective, evaluator.configuration, point)
                if value is not None:
                    rows.append((evaluator.configuration, point, value))
        return min(rows, key=lambda row: row[2], default=None)

    @cached_property
    def binding(self) -> binding.Binding:
        """What keeps the next better point out."""
        return binding.binding(self)

    @cached_property
    def sensitivity(self) -> sensitivity.Sensitivity:
        """Elasticities and shadow prices."""
        return sensitivity.sensitivity(self)

    @cached_property
    def robustness(self) -> robustness.Robustness:
        """How often the plan holds over the evidence intervals."""
        return robustness.robustness(self)

    @cached_property
    def dram_worth(self) -> worth.DramWorth | None:
        """What the DRAM is worth per node-hour, None where the plan has none."""
        return worth.dram_worth(self)

    @cached_property
    def frontier(self) -> tuple[frontier.FrontierPoint, ...]:
        """Cost and throughput against interactivity."""
        return frontier.frontier(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        from ..report.engine_flags import engine_flags

        scenario, best = self.run.scenario, self.best
        tier = best.tier_tokens
        hbm = float(self.run.budget.usable_kv_tokens)
        case, margin = best.nearest, best.run.cost.margin
        speculation = scenario.deployment.speculation
        return {
            "feasible": True,
            "best": {
                "concurrency": self.concurrency,
                "session_cap": self.concurrency,
                "cautious_session_cap": best.session_cap,
                "running_limit": best.running_limit,
                "offload_bytes": self.dram_bytes,
                "offload_fraction": tier / (tier + hbm),
                "offload_tokens": tier,
                "offload_copies": self.run.budget.kv_replication,
                "replicas": self.replicas,
                "nodes": self.replicas * scenario.node.nodes,
                "node": scenario.node.name,
                "layout": {
                    name: getattr(scenario.deployment, name)
                    for name in ("tp", "pp", "dp", "ep", "dcp")
                },
                "kv_dtype": scenario.deployment.kv_dtype,
                "speculation": None if speculation is None else speculation.draft_tokens,
                "usd_per_hour": self.usd_per_hour,
                "margin": margin.get(scenario.bill_cached),
                "margin_by_billing": margin,
                "estimate": best.to_dict(),
            },
            "objective": self.question.objective.kind,
            "objective_usd_per_mtok": self.objective_usd_per_mtok,
            "runner_up": self._runner_up_dict(),
            "model_error": None if case is None else case.relative_error,
            "solver_gap": self.certificate.relative_gap,
            "certificate": self.certificate.to_dict(),
            "frontier": [point.to_dict() for point in self.frontier],
            "binding": self.binding.text,
            "binding_constraints": list(self.binding.names),
            "shadow_prices": self.sensitivity.shadow_prices,
            "elasticities": self.sensitivity.elasticities,
            "dram_worth": None if self.dram_worth is None else self.dram_worth.to_dict(),
            "robustness": self.robustness.to_dict(),
            "price_floor": self._price_floor_dict(),
            "engine_flags": engine_flags(best, session_cap=self.concurrency),
        }

    def _price_floor_dict(self) -> dict[str, Any] | None:
        """Tariffs, in proportion to the market's, at which the plan breaks even and keeps half."""
        if self.run.scenario.tariff is None:
            return None
        rows = {}
        for name, margin in (("breakeven", 0.0), ("half_margin", 0.5)):
            floor = price_floor(self, margin)
            rows[name] = {
                "multiple": floor.multiple,
                "input_usd_per_mtok": floor.tariff.input_usd_per_mtok,
                "cached_input_usd_per_mtok": floor.tariff.cached_input_usd_per_mtok,
                "output_usd_per_mtok": floor.tariff.output_usd_per_mtok,
            }
        return rows

    def _runner_up_dict(self) -> dict[str, Any] | None:
        if self.runner_up is None:
            return None
        configuration, point, value = self.runner_up
        return {
            "concurrency": point.concurrency,
            "offload_bytes": point.dram_bytes,
            **configuration.label,
            "value": value,
            "regret": value / self.found.value - 1.0,
        }

    def __str__(self) -> str:
        from .plan_text import plan_text

        return plan_text(self)
