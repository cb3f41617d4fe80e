"""A measured agentic point: the scenario it ran, what was measured, what had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..scenario import ResolvedScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """One row of a measured set as a scenario, or the reason why it is none.

    Parameters
    ----------
    id, source, date : str
        Row, where it was published, day.
    model, accelerator, engine : str
        Catalog names.
    scenario : ResolvedScenario, optional
        What was run; None where it cannot be expressed.
    concurrency : int
        Live sessions [1].
    accepted_tokens : float, optional
        Accepted length that the run used [tokens].
    output_tokens_per_s, total_tokens_per_s : float, optional
        Measured, of the replica; total counts cached input [tokens/s].
    hit_rate_hbm, hit_rate, theoretical_hit_rate : float, optional
        Measured shares of prompt tokens; `hit_rate` over all tiers [1].
    tier_is_stated : bool
        Whether the source says if there is a tier behind HBM.
    assumptions : tuple of str
        What the source leaves open.
    unusable : str
        Why no scenario can be made of the row, empty where one can.
    """

    id: str
    source: str
    date: str
    model: str
    accelerator: str
    engine: str
    scenario: ResolvedScenario | None = None
    concurrency: int = 0
    accepted_tokens: float | None = None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    hit_rate_hbm: float | None = None
    hit_rate: float | None = None
    theoretical_hit_rate: float | None = None
    tier_is_stated: bool = True
    assumptions: tuple[str, ...] = ()
    unusable: str = ""

    @property
    def has_throughput(self) -> bool:
        """Whether a rate was measured."""
        return bool(self.output_tokens_per_s or self.total_tokens_per_s)

    @property
    def node_name(self) -> str:
        """The accelerators as people write them, empty without a scenario."""
        if self.scenario is None:
            return ""
        return f"{self.scenario.node.nodes} x {self.scenario.node.name}"

    @property
    def curve(self) -> tuple[object, ...]:
        """What points of one curve share: source and configuration, concurrency aside."""
        if self.scenario is None:
            return (self.id,)
        deployment = replace(
            self.scenario.deployment, max_num_seqs=None, available_kv_gib=None, offload=None
        )
        return (self.source, self.model, self.node_name, deployment)

    @property
    def configuration(self) -> tuple[object, ...]:
        """What identical configurations share, builds and sources aside."""
        if self.scenario is None:
            return (self.id,)
        deployment = replace(
            self.scenario.deployment, engine_version="", available_kv_gib=None, max_num_seqs=None
        )
        return (
            self.model, self.node_name, deployment, self.accepted_tokens, self.concurrency,
        )  # fmt: skip


def regime(hit_rate: float, theoretical_hit_rate: float) -> str:
    """Side of the cache cliff, by the share of the theoretical hits that is left."""
    if theoretical_hit_rate <= 0:
        return "no reuse"
    share = hit_rate / theoretical_hit_rate
    return "before" if share >= 0.9 else "past" if share < 0.1 else "at"
