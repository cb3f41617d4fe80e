"""The normal and gamma laws as the code approximates them, for claims to the last digit."""

from __future__ import annotations

from typing import Any

import sympy as sp

Expr = Any

# Abramowitz and Stegun 26.2.17, absolute error under 7.5e-8.
_SLOPE = sp.Rational(2316419, 10**7)
_SERIES = ("0.319381530", "-0.356563782", "1.781477937", "-1.821255978", "1.330274429")


def rough_normal(y: Expr) -> Expr:
    """Standard normal distribution function by the five-term series."""
    size = sp.Abs(y)
    t = 1 / (1 + _SLOPE * size)
    series = sum(sp.Rational(c) * t ** (k + 1) for k, c in enumerate(_SERIES))
    tail = series * sp.exp(-(y**2) / 2) / sp.sqrt(2 * sp.pi)
    return sp.Piecewise((tail, y < 0), (1 - tail, True), evaluate=False)


def cube_root_score(shape: Expr, x: Expr) -> Expr:
    """Normal score of a unit-mean gamma value by its cube root."""
    return 3 * sp.sqrt(shape) * (sp.cbrt(x) - 1 + 1 / (9 * shape))


def cube_root_chance(shape: Expr, x: Expr) -> Expr:
    """P(X <= x) of a unit-mean gamma law by its cube root."""
    return rough_normal(cube_root_score(shape, x))


def cube_root_excess(shape: Expr, x: Expr) -> Expr:
    """E[(x - X)^+] of a unit-mean gamma law by its cube root, between its two bounds."""
    raised = cube_root_chance(shape + 1, x * shape / (shape + 1))
    free = x * cube_root_chance(shape, x) - raised
    # Unevaluated: comparing such long terms takes seconds and decides nothing.
    return sp.Min(sp.Max(free, x - 1, 0, evaluate=False), x, evaluate=False)
