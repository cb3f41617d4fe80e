"""A node: some accelerators of one kind and their host memory; an engine may span several."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import SpecError
from .accelerator import Accelerator

MOST_ACCELERATORS = 4096
NODE_PATTERN = re.compile(r"^\s*(\d+)\s*[xX×]\s*(.+?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The hardware one engine replica runs on.

    Parameters
    ----------
    accelerator : Accelerator
        The part.
    gpus : int
        Accelerators per node [1].
    nodes : int
        Nodes of one engine replica [1].
    """

    accelerator: Accelerator
    gpus: int
    nodes: int = 1

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.nodes < 1:
            raise SpecError("a node needs at least one accelerator.", field="gpus")

    @property
    def name(self) -> str:
        """The form people write: ``8xB300``."""
        return f"{self.gpus}x{self.accelerator.name}"

    @property
    def total_gpus(self) -> int:
        """Accelerators of the replica over all its nodes [1]."""
        return self.gpus * self.nodes

    @property
    def host_dram_bytes(self) -> float:
        """Host memory of one node, in proportion to the accelerators used [bytes]."""
        share = self.gpus / self.accelerator.gpus_per_node
        return self.accelerator.host_dram_bytes * share


def split_node_name(text: str) -> tuple[int, str]:
    """Return (count, accelerator name) of text such as ``8xB300`` or ``4xMI355X``.

    Raises
    ------
    SpecError
        If the text is not of the form COUNTxNAME.
    """
    match = NODE_PATTERN.match(text)
    if not match or not 1 <= int(match.group(1)) <= MOST_ACCELERATORS:
        raise SpecError(
            f"node {text!r} is not of the form COUNTxACCELERATOR, such as 8xB300.", field="node"
        )
    return int(match.group(1)), match.group(2)
