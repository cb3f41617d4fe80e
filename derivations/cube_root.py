"""The normal and gamma laws as the code approximates them, for claims to the last digit."""

from __future__ import annotations

from typing import Any

import sympy as sp

Expr = Any


def normal_chance(y: Expr) -> Expr:
    """Standard normal distribution function."""
    return sp.erfc(-y / sp.sqrt(2)) / 2


def cube_root_score(shape: Expr, x: Expr) -> Expr:
    """Normal score of a unit-mean gamma value by its cube root."""
    return 3 * sp.sqrt(shape) * (sp.cbrt(x) - 1 + 1 / (9 * shape))


def cube_root_chance(shape: Expr, x: Expr) -> Expr:
    """P(X <= x) of a unit-mean gamma law by its cube root."""
    return normal_chance(cube_root_score(shape, x))


def cube_root_excess(shape: Expr, x: Expr) -> Expr:
    """E[(X - x)^+] of a unit-mean gamma law by its cube root; below nothing it is 1 - x."""
    above = 1 - cube_root_chance(shape, x)
    heavy = 1 - cube_root_chance(shape + 1, x * shape / (shape + 1))
    # Unevaluated: comparing such long terms takes seconds and decides nothing.
    free = sp.Max(heavy - x * above, 0, evaluate=False)
    return sp.Piecewise((1 - x, x <= 0), (free, True), evaluate=False)
