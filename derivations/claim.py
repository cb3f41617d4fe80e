"""A claim: a formula, the function that implements it, and where the two are compared."""

from __future__ import annotations

import importlib
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mpmath
import sympy as sp

DIGITS = 30
POINTS = 4
# One factor per base dimension; integers, so that counts of tokens stay whole.
FACTORS = {"tokens": 3, "s": 7, "bytes": 5, "flop": 11, "usd": 13}
ALIASES = {"h": "s", "mtok": "tokens", "gb": "bytes"}


@dataclass(frozen=True, slots=True)
class Draw:
    """Where an argument is drawn from: a closed range, its unit, and whether it counts."""

    low: float
    high: float
    unit: str = "1"
    whole: bool = False

    def sample(self, source: random.Random) -> float:
        """Return one value, log-uniform where the range is positive."""
        if self.whole:
            return source.randint(int(self.low), int(self.high))
        if self.low > 0:
            return float(self.low * (self.high / self.low) ** source.random())
        return source.uniform(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Limit:
    """At `symbol = value` the code must return `expected`, to a relative tolerance."""

    symbol: Any
    value: float
    expected: Any
    tolerance: float = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The last line of a proof, and the code that computes it.

    Parameters
    ----------
    text : str
        The claim in words.
    implements : tuple of str
        Functions that compute it, as ``"capmodel.cost.tokens:usd_per_mtok"``.
    formula : sympy expression
        The last line.
    domain : mapping of symbol to Draw
        Arguments of the formula, in the order in which `code` takes them.
    code : callable
        Calls the implementing function with floats.
    unit : str
        Unit of the value, such as ``"usd/tokens"``; units follow from the arguments' in a test.
    where : callable, optional
        True at the points where the formula is claimed.
    rises, falls : tuple of symbol
        Arguments in which the value strictly rises or falls over the domain.
    limits : tuple of Limit
        Values at the ends.
    tolerance : float
        Relative agreement of the code with the formula [1].
    """

    text: str
    implements: tuple[str, ...]
    formula: Any
    domain: Mapping[Any, Draw]
    code: Callable[..., Any]
    unit: str = "1"
    where: Callable[..., bool] | None = None
    rises: tuple[Any, ...] = ()
    falls: tuple[Any, ...] = ()
    limits: tuple[Limit, ...] = field(default_factory=tuple)
    tolerance: float = 1e-9

    def points(self, count: int = POINTS) -> list[tuple[float, ...]]:
        """Return drawn argument tuples, the same on every run."""
        source = random.Random(zlib.crc32(self.text.encode()))
        found: list[tuple[float, ...]] = []
        for _ in range(2000):
            values = tuple(draw.sample(source) for draw in self.domain.values())
            if self.where is None or self.where(*values):
                found.append(values)
            if len(found) == count or not self.domain:
                return found
        raise ValueError(f"the domain of {self.text!r} is too thin to draw from")

    def expected(self, values: tuple[float, ...], formula: Any = None) -> mpmath.mpf:
        """Return the formula at a point, to 30 digits."""
        chosen = self.formula if formula is None else formula
        with mpmath.workdps(DIGITS + 10):
            call = sp.lambdify(list(self.domain), chosen, "mpmath")
            return mpmath.mpf(call(*(mpmath.mpf(value) for value in values)))

    def value(self, values: tuple[float, ...]) -> float:
        """Return what the code computes at a point."""
        return float(self.code(*values))

    def agrees(self, values: tuple[float, ...], expected: mpmath.mpf) -> bool:
        """Return whether the code's value at a point is the expected one."""
        return close(self.value(values), expected, self.tolerance)

    def scaled(self, values: tuple[float, ...]) -> tuple[tuple[float, ...], float]:
        """Return the point in other units, and the factor its value must change by."""
        units = [draw.unit for draw in self.domain.values()]
        moved = tuple(
            value * unit_factor(unit) if unit_factor(unit) != 1 else value
            for value, unit in zip(values, units, strict=True)
        )
        return moved, unit_factor(self.unit)

    def functions(self) -> list[Any]:
        """Return the implementing functions, properties as properties."""
        return [resolve(name) for name in self.implements]


def close(value: float, expected: Any, tolerance: float) -> bool:
    """Return whether two numbers agree to a relative tolerance; NaN never does."""
    size = max(abs(float(expected)), 1e-300)
    return abs(value - float(expected)) <= tolerance * size


def unit_factor(unit: str) -> float:
    """Return by how much a quantity changes when its base units change by `FACTORS`."""
    factor = 1.0
    for position, part in enumerate(unit.split("/")):
        for piece in part.split("*"):
            name, _, power = piece.partition("^")
            base = FACTORS.get(ALIASES.get(name, name))
            if base is None and name != "1":
                raise ValueError(f"unit {unit!r}: no base unit {name!r}")
            scale = (base or 1) ** int(power or 1)
            factor = factor * scale if position == 0 else factor / scale
    return int(factor) if factor >= 1 and float(factor).is_integer() else factor


def resolve(name: str) -> Any:
    """Return the object that ``"module:Class.attribute"`` names."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = found.__dict__[part] if isinstance(found, type) else getattr(found, part)
    return found
