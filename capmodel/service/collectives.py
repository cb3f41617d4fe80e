"""Collectives: seconds to move activations between the ranks of one engine replica.

Each is a latency floor plus bytes over a rate. Rates at full message size are measured for groups
of 2, 4 and 8 on many parts; elsewhere a share of the link, and of the network across nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog import efficiencies
from ..spec.accelerator import Accelerator
from ..spec.node import Node
from ..units import GB
from .roofline import efficiency_table

NVLINK_FLOOR_BYTES_PER_S = 150e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective over a group.

    Parameters
    ----------
    latency_s : float
        Floor of a call [s].
    bytes_per_s : float
        Message bytes over time for large messages [bytes/s].
    kind : str
        Evidence behind the rate.
    """

    latency_s: float
    bytes_per_s: float
    kind: str

    def seconds(self, message_bytes: float) -> float:
        """Time of a call with a message of so many bytes [s]."""
        return self.latency_s + message_bytes / self.bytes_per_s


def collective(operation: str, ranks: int, node: Node) -> Collective:
    """Return the floor and the rate of a collective.

    Parameters
    ----------
    operation : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
        What moves; the message is the whole reduced or gathered tensor, or what one rank sends.
    ranks : int
        Size of the group [1].
    node : Node
        Where it runs: inside one scale-up domain, or across nodes.

    Notes
    -----
    Bus to algorithm bandwidth: ``n / 2(n-1)`` for an all-reduce, ``n / (n-1)`` for the others.
    Across domains the network share of a rank bounds it (assumed).
    """
    part = node.accelerator
    links = efficiencies("defaults")["links"]
    factor = (2 if operation == "all_reduce" else 1) * (ranks - 1) / ranks
    if not within_domain(ranks, node):
        rate = part.nic_bytes_per_s * links["network_share"][0] / factor
        if rate <= 0:
            rate = part.host_bytes_per_s * links["network_share"][1] / factor
        return Collective(
            latency_s=links["latency_s"]["network"][0], bytes_per_s=rate, kind="assumed"
        )
    latency = links["latency_s"][link_kind(part)][0]
    measured = _measured(operation, ranks, part)
    if measured is not None:
        return Collective(latency_s=latency, bytes_per_s=measured, kind="measured")
    rate = part.scale_up_bytes_per_s * links[operation][0] / factor
    return Collective(latency_s=latency, bytes_per_s=rate, kind="assumed")


def within_domain(ranks: int, node: Node) -> bool:
    """True where a group of so many ranks stays inside one scale-up domain."""
    return ranks <= max(node.gpus, min(node.accelerator.scale_up_domain, node.total_gpus))


def link_kind(part: Accelerator) -> str:
    """Class of the scale-up link, which sets the latency floor."""
    if part.scale_up_bytes_per_s < NVLINK_FLOOR_BYTES_PER_S:
        return "pcie"
    return "xgmi" if part.vendor == "AMD" else "nvlink"


def point_to_point(node: Node, across_nodes: bool) -> Collective:
    """Return the link a pipeline stage sends its activations over."""
    part = node.accelerator
    links = efficiencies("defaults")["links"]
    if across_nodes and part.scale_up_domain < node.total_gpus:
        rate = (part.nic_bytes_per_s or part.host_bytes_per_s) * links["network_share"][0]
        return Collective(
            latency_s=links["latency_s"]["network"][0], bytes_per_s=rate, kind="assumed"
        )
    rate = (part.scale_up_bytes_per_s or part.host_bytes_per_s) * links["all_gather"][0]
    return Collective(
        latency_s=links["latency_s"][link_kind(part)][0], bytes_per_s=rate, kind="assumed"
    )


def _measured(operation: str, ranks: int, part: Accelerator) -> float | None:
    table_name, kind = efficiency_table(part.name)
    if table_name is None or kind != "measured":
        return None
    rate = efficiencies(table_name)["collectives"][operation].get(ranks)
    return None if rate is None else float(rate) * GB
