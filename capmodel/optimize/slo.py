"""Service-level objectives: bounds on latency percentiles and interactivity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import SpecError, nearest_names
from ..network.latency import Latency

# name -> (field of Latency, percentile, True where smaller is better)
KEYS = {
    f"{name}_{percentile}": (f"{name}_s", percentile, True)
    for name in ("ttft", "tpot", "e2e")
    for percentile in ("mean", "p50", "p90", "p99")
} | {f"interactivity_{percentile}": ("tpot_s", percentile, False) for percentile in ("p50", "p90")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """One bound: a latency at most, or an interactivity at least, `limit` [s] or [tokens/s]."""

    key: str
    limit: float

    def value(self, latency: Latency) -> float:
        """The figure that the bound is about [s] or [tokens/s]."""
        name, percentile, smaller = KEYS[self.key]
        seconds: float = getattr(getattr(latency, name), percentile)
        return seconds if smaller else 1.0 / seconds

    def met(self, latency: Latency) -> bool:
        """True where the bound holds."""
        smaller = KEYS[self.key][2]
        value = self.value(latency)
        return value <= self.limit if smaller else value >= self.limit


def parse_slos(texts: Iterable[str]) -> tuple[Slo, ...]:
    """Return the bounds written as ``ttft_p90=5`` (seconds) or ``interactivity_p90=30``.

    Raises
    ------
    SpecError
        If a key is unknown or a limit is not a positive number.
    """
    slos = []
    for text in texts:
        key, _, limit = text.partition("=")
        key = key.strip().removesuffix("_s").replace("_s_", "_")
        if key not in KEYS:
            raise SpecError(
                f"slo: unknown key {key!r}.", field="slo", nearest=nearest_names(key, KEYS)
            )
        try:
            value = float(limit)
        except ValueError:
            value = math.nan
        if not (value > 0 and math.isfinite(value)):
            raise SpecError(f"slo: {text!r} needs a positive limit.", field="slo")
        slos.append(Slo(key=key, limit=value))
    return tuple(slos)
