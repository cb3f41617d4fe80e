"""Agreement: the code computes what each proof ends in, to 1e-9 at 30-digit reference values."""

from __future__ import annotations

import pytest

from derivations.claim import Claim

from .proved import NAMES, claims

# Claims whose code is itself a table, a quadrature, a bisection or a population taken for a limit.
LOOSEST = 0.03


@pytest.mark.parametrize("name", NAMES)
def test_code_has_the_claimed_value(name: str) -> None:
    for claim in claims(name):
        for point in claim.points():
            value, expected = claim.value(point), claim.expected(point)
            assert claim.agrees(point, expected), (claim.text, point, value, expected)


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_drawn_apart(name: str) -> None:
    """Equal texts would draw equal points; equal points would test nothing twice."""
    texts = [claim.text for claim in claims(name)]
    assert len(set(texts)) == len(texts)


def test_most_claims_hold_to_nine_digits() -> None:
    every = [claim for name in NAMES for claim in claims(name)]
    tight = [claim for claim in every if claim.tolerance <= 1e-7]
    assert len(tight) > 0.9 * len(every)
    assert max(claim.tolerance for claim in every) <= LOOSEST


@pytest.mark.parametrize("name", NAMES)
def test_code_moves_as_claimed(name: str) -> None:
    for claim in claims(name):
        for symbol, sign in [(s, 1) for s in claim.rises] + [(s, -1) for s in claim.falls]:
            for point in claim.points():
                moved = _moved(claim, symbol, point)
                if claim.where is not None and not claim.where(*moved):
                    continue
                change = claim.value(moved) - claim.value(point)
                assert sign * change > 0, (claim.text, symbol, point, change)


def _moved(claim: Claim, symbol: object, point: tuple[float, ...]) -> tuple[float, ...]:
    at = list(claim.domain).index(symbol)
    step = 1 if claim.domain[symbol].whole else 1e-3 * (abs(point[at]) or 1.0)
    return (*point[:at], point[at] + step, *point[at + 1 :])


@pytest.mark.parametrize("name", NAMES)
def test_code_has_the_claimed_limits(name: str) -> None:
    for claim in claims(name):
        for limit in claim.limits:
            at = list(claim.domain).index(limit.symbol)
            for point in claim.points():
                end = (*point[:at], limit.value, *point[at + 1 :])
                expected = float(claim.expected(end, limit.expected))
                value = claim.value(end)
                assert value == pytest.approx(expected, rel=limit.tolerance, abs=1e-12), (
                    claim.text,
                    end,
                )
