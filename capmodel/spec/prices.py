"""Token prices (the tariff) and what an accelerator-hour costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import SpecError
from ..units import parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """A three-part tariff per million tokens.

    Parameters
    ----------
    input_usd_per_mtok, cached_input_usd_per_mtok, output_usd_per_mtok : float
        Price of fresh input, cached input and output [USD per 1e6 tokens].
    date, source : str
        When and where it was listed.
    """

    input_usd_per_mtok: float
    cached_input_usd_per_mtok: float
    output_usd_per_mtok: float
    date: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("input_usd_per_mtok", "cached_input_usd_per_mtok", "output_usd_per_mtok"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise SpecError(f"{name} must be finite and not negative, got {value}.", field=name)


_PRICE_KEYS = {
    "in": "input_usd_per_mtok",
    "input": "input_usd_per_mtok",
    "cached": "cached_input_usd_per_mtok",
    "out": "output_usd_per_mtok",
    "output": "output_usd_per_mtok",
}


def parse_tariff(text: str) -> Tariff:
    """Return the tariff written as ``in=3,cached=0.3,out=15``; cached defaults to the input price.

    Raises
    ------
    SpecError
        If a key is unknown, doubled or missing.
    """
    given: dict[str, float] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        name = _PRICE_KEYS.get(key.strip())
        if name is None or not value:
            raise SpecError(
                f"price: cannot read {part.strip()!r}; write in=3,cached=0.3,out=15.", field="price"
            )
        if name in given:
            raise SpecError(f"price: {key.strip()!r} is given twice.", field="price")
        given[name] = parse_quantity(value.strip().lstrip("$"), "", "price")
    if "input_usd_per_mtok" not in given or "output_usd_per_mtok" not in given:
        raise SpecError("price: give both in= and out=.", field="price")
    given.setdefault("cached_input_usd_per_mtok", given["input_usd_per_mtok"])
    return Tariff(**given)  # type: ignore[arg-type]
