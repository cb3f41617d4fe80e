"""What a page asks: a few names from the catalog and numbers within limits, nothing else."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import catalog
from ..errors import SpecError, nearest_names
from ..scenario import Scenario

NODE = re.compile(r"(?P<count>[1-9]\d?)x(?P<part>[A-Za-z0-9-]{1,32})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The controls of the page; every field has a default and a domain.

    Parameters
    ----------
    model, workload : str
        Catalog names. Files are not read on a page's word.
    node : str
        Such as ``8xB300``.
    concurrency : int
        Live sessions, 1 to 512 [1].
    offload_tib : float
        DRAM tier per node, 0 to 16 [TiB].
    gpu_hour_usd : float
        Price per GPU-hour, 0 for the catalog's [USD].
    input_usd, cached_usd, output_usd : float
        Tariff, all 0 for the catalog's [USD per 1e6 tokens].
    """

    model: str = "kimi-k3"
    node: str = "8xB300"
    workload: str = "agentic-coding"
    concurrency: int = 8
    offload_tib: float = 0.0
    gpu_hour_usd: float = 0.0
    input_usd: float = 0.0
    cached_usd: float = 0.0
    output_usd: float = 0.0

    @property
    def scenario(self) -> Scenario:
        """The scenario without its prices, which cost no solving."""
        tier = f"dram:{self.offload_tib:g}TiB" if self.offload_tib else None
        return Scenario(model=self.model, node=self.node, workload=self.workload, offload=tier)

    @property
    def priced_scenario(self) -> Scenario:
        """The scenario with the prices that were given."""
        prices = (self.input_usd, self.cached_usd, self.output_usd)
        price = "in={:g},cached={:g},out={:g}".format(*prices) if any(prices) else None
        return dataclasses.replace(
            self.scenario, price=price, gpu_hour_usd=self.gpu_hour_usd or None
        )


LIMITS = {
    "concurrency": (1, 512),
    "offload_tib": (0, 16),
    "gpu_hour_usd": (0, 1000),
    "input_usd": (0, 1000),
    "cached_usd": (0, 1000),
    "output_usd": (0, 1000),
}


def parse_question(query: Mapping[str, str]) -> Question:
    """Return the checked question in a query string.

    Raises
    ------
    SpecError
        If a key is unknown, a name is not in the catalog, or a number is outside its limits.
    """
    values: dict[str, Any] = {}
    known = [field.name for field in dataclasses.fields(Question)]
    for key, text in query.items():
        if key not in known:
            raise SpecError(f"unknown key {key!r}.", field=key, nearest=nearest_names(key, known))
        values[key] = _number(key, text) if key in LIMITS else text
    asked = Question(**values)
    _in_catalog("model", asked.model, catalog.names("models"))
    _in_catalog("workload", asked.workload, catalog.names("workloads"))
    found = NODE.fullmatch(asked.node)
    if found is None:
        raise SpecError(f"node {asked.node!r}: write COUNTxPART, such as 8xB300.", field="node")
    _in_catalog("node", found["part"], catalog.names("accelerators"))
    return asked


def _number(key: str, text: str) -> float:
    low, high = LIMITS[key]
    try:
        value = float(text)
    except ValueError:
        raise SpecError(f"{key}: {text!r} is not a number.", field=key) from None
    if not (math.isfinite(value) and low <= value <= high):
        raise SpecError(f"{key}: {text} is outside {low} to {high}.", field=key)
    if key == "concurrency":
        if value != int(value):
            raise SpecError(f"{key}: {text} is not a whole number.", field=key)
        return int(value)
    return value


def _in_catalog(field: str, name: str, names: Any) -> None:
    if name not in names:
        raise SpecError(
            f"{field} {name!r} is not in the catalog.",
            field=field,
            nearest=nearest_names(name, list(names)),
        )
