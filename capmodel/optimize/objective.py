"""What a plan minimises, and what it would be at best: cost, margin or throughput, with demand."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..cost.rental import usd_per_hour
from ..cost.tokens import billed_cached_tokens, revenue_per_request_usd
from ..errors import SpecError
from ..scenario import ResolvedScenario
from ..units import GB, MILLION, SECONDS_PER_HOUR

KINDS = ("cost", "margin", "throughput")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A value to minimise that falls with the request rate and rises with the hourly price.

    Parameters
    ----------
    kind : {"cost", "margin", "throughput"}
        Cost per million tokens; cost over revenue (one less the margin); or seconds per request
        of one replica.
    demand_requests_per_s : float or None
        Rate that the replicas must carry together; None prices one full replica [requests/s].
    headroom : float
        Share of a replica's rate that is planned for, where there is a demand [1].
    spare_replicas : int
        Replicas kept beyond the demand (N + k) [1].
    budget_usd_per_hour : float or None
        Most that all replicas may cost [USD/h].
    """

    kind: str = "cost"
    demand_requests_per_s: float | None = None
    headroom: float = 1.0
    spare_replicas: int = 0
    budget_usd_per_hour: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SpecError(
                f"objective {self.kind!r} is not one of {', '.join(KINDS)}.", field="objective"
            )
        for name in ("demand_requests_per_s", "budget_usd_per_hour"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise SpecError(f"{name} must be positive and finite, got {value}.", field=name)
        if not 0 < self.headroom <= 1:
            raise SpecError("headroom must be in (0, 1].", field="headroom")
        if self.spare_replicas < 0:
            raise SpecError("spare replicas must not be negative.", field="spare")

    def replicas(self, requests_per_s: float) -> int:
        """Replicas that carry the demand at this rate each, spares included [1]."""
        if self.demand_requests_per_s is None:
            return 1 + self.spare_replicas
        needed = self.demand_requests_per_s / (self.headroom * requests_per_s)
        return math.ceil(needed * (1.0 - 1e-12)) + self.spare_replicas

    def over_budget(self, hourly_usd: float, requests_per_s: float) -> bool:
        """True where all replicas together cost more than the budget."""
        if self.budget_usd_per_hour is None:
            return False
        return self.replicas(requests_per_s) * hourly_usd > self.budget_usd_per_hour * (1 + 1e-12)

    def value(
        self, scenario: ResolvedScenario, hourly_usd: float, requests_per_s: float, hit_rate: float
    ) -> float:
        """Value of a plan, smaller is better.

        Parameters
        ----------
        scenario : ResolvedScenario
            Workload, tariff and billing rule.
        hourly_usd : float
            Price of one replica [USD/h].
        requests_per_s : float
            Rate of one replica [requests/s].
        hit_rate : float
            Token-weighted overall hit rate; matters where actual hits are billed [1].

        Returns
        -------
        float
            [USD per 1e6 tokens], [1] or [s].

        Notes
        -----
        It falls with the rate and rises with the price; with a smaller hit rate it does not rise.
        So a bound follows from an upper bound of the rate and lower bounds of the other two.
        """
        if self.kind == "throughput":
            return 1.0 / requests_per_s
        carried = self.demand_requests_per_s
        if carried is None:
            carried = requests_per_s
        hourly = hourly_usd * self.replicas(requests_per_s)
        per_request = hourly / (SECONDS_PER_HOUR * carried)
        if self.kind == "margin":
            return per_request / revenue_usd(scenario, hit_rate)
        return per_request / tokens_per_request(scenario) * MILLION


def tokens_per_request(scenario: ResolvedScenario) -> float:
    """Prompt and output tokens of a mean request [tokens]."""
    return scenario.workload.request_tokens_mean + scenario.workload.output_tokens_mean


def revenue_usd(scenario: ResolvedScenario, hit_rate: float) -> float:
    """Revenue of a mean request under the scenario's billing rule [USD]."""
    workload, tariff = scenario.workload, scenario.tariff
    if tariff is None:
        raise SpecError(
            f"no token prices for {scenario.model.name}; give --price in=...,cached=...,out=....",
            field="price",
        )
    prompt = workload.request_tokens_mean
    cached = billed_cached_tokens(
        scenario.bill_cached, prompt, hit_rate, workload.theoretical_hit_rate
    )
    return revenue_per_request_usd(tariff, prompt, cached, workload.output_tokens_mean)


def hourly_usd(scenario: ResolvedScenario, dram_bytes: float) -> float:
    """Price of one replica with a tier of this size on each of its nodes [USD/h]."""
    assert scenario.gpu_hour_usd is not None  # checked where a search starts
    return usd_per_hour(
        scenario.node.total_gpus,
        scenario.gpu_hour_usd,
        dram_bytes * scenario.node.nodes,
        scenario.dram_gb_hour_usd,
    )


def dram_usd_per_hour(scenario: ResolvedScenario, dram_bytes: float) -> float:
    """Part of the hourly price that the tier takes [USD/h]."""
    return dram_bytes * scenario.node.nodes / GB * scenario.dram_gb_hour_usd
