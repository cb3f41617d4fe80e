"""Units: SI floats inside, human text at the edge.

Decimal and binary prefixes are never mixed: "80 GB" is 80e9 bytes, "80 GiB" is 80 * 2**30.
"""

from __future__ import annotations

import math
import re

from .errors import SpecError

KIB = 2**10
MIB = 2**20
GIB = 2**30
TIB = 2**40
GB = 1e9
TB = 1e12
TERA = 1e12
MILLION = 1e6
SECONDS_PER_HOUR = 3600.0

_PREFIXES = {
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": float(KIB),
    "Mi": float(MIB),
    "Gi": float(GIB),
    "Ti": float(TIB),
}
_QUANTITY = re.compile(
    r"^\s*([+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z/]*\s?[A-Za-z/]*)\s*$"
)


def _split(text: str, field: str) -> tuple[float, str]:
    match = _QUANTITY.match(text)
    if not match:
        raise SpecError(f"{field}: cannot read {text!r} as a number with a unit.", field=field)
    value = float(match.group(1).replace("_", "").replace(",", ""))
    return value, match.group(2).replace(" ", "")


def parse_quantity(text: str | float, unit: str, field: str = "value") -> float:
    """Return `text` in SI, for a number followed by an optional prefix and `unit`.

    Parameters
    ----------
    text : str or float
        For example ``"1889GB"``, ``"42.2 GiB"``, ``"3.25M"``; a bare number is already SI.
    unit : str
        The unit expected after the prefix, such as ``"B"``, ``"tokens"``, ``"FLOP/s"``.
    field : str
        Name used in the error message.

    Returns
    -------
    float
        The quantity in SI [unit].

    Raises
    ------
    SpecError
        If the text is not a finite number with a known prefix.
    """
    if isinstance(text, bool):
        raise SpecError(f"{field}: expected a quantity in {unit}, got {text!r}.", field=field)
    if isinstance(text, int | float):
        value = float(text)
    else:
        number, suffix = _split(str(text), field)
        prefix = suffix.removesuffix(unit) if unit and suffix.endswith(unit) else suffix
        if prefix not in _PREFIXES:
            raise SpecError(
                f"{field}: unit {suffix!r} in {text!r} is not understood; "
                f"give {unit} with a prefix k, M, G, T or Ki, Mi, Gi, Ti.",
                field=field,
            )
        value = number * _PREFIXES[prefix]
    if not math.isfinite(value):
        raise SpecError(f"{field}: must be finite, got {text!r}.", field=field)
    return value


def parse_bytes(text: str | float, field: str = "bytes") -> float:
    """Return a number of bytes [bytes] from text such as ``"1889GB"`` or ``"42.23 GiB"``."""
    value = parse_quantity(text, "B", field)
    if value < 0:
        raise SpecError(f"{field}: must not be negative, got {text!r}.", field=field)
    return value


def format_bytes(value: float) -> str:
    """Return bytes as people write memory sizes, in binary units: ``"42.2 GiB"``."""
    for scale, unit in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.4g} B"


def format_count(value: float) -> str:
    """Return a large count with a decimal suffix: ``"3.25M"``, ``"142k"``."""
    for scale, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{suffix}"
    return f"{value:.3g}"


def format_seconds(value: float) -> str:
    """Return a duration at three digits in the unit that suits it: ``"85 ms"``, ``"3.4 s"``."""
    if value < 0.1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s"
