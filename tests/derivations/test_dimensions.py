"""Property: in other units every claim's code gives the same quantity, so no term was forgotten."""

from __future__ import annotations

import pytest

from derivations.claim import FACTORS, close, unit_factor

from .proved import NAMES, claims


@pytest.mark.parametrize("name", NAMES)
def test_value_scales_by_its_own_unit(name: str) -> None:
    for claim in claims(name):
        for point in claim.points(2):
            moved, factor = claim.scaled(point)
            tolerance = max(claim.tolerance, 1e-8)
            assert close(claim.value(moved), claim.value(point) * factor, tolerance), (
                claim.text,
                point,
                moved,
            )


def test_enough_claims_carry_units() -> None:
    every = [claim for name in NAMES for claim in claims(name)]
    with_units = [c for c in every if any(d.unit != "1" for d in c.domain.values())]
    assert len(with_units) >= 100


def test_units_are_read() -> None:
    tokens, seconds = FACTORS["tokens"], FACTORS["s"]
    assert unit_factor("1") == 1
    assert unit_factor("tokens/s") == pytest.approx(tokens / seconds)
    assert unit_factor("tokens^2*s") == tokens**2 * seconds
    assert unit_factor("usd/mtok") == pytest.approx(FACTORS["usd"] / tokens)
    assert unit_factor("usd/h/bytes") == pytest.approx(FACTORS["usd"] / seconds / FACTORS["bytes"])
    with pytest.raises(ValueError, match="no base unit"):
        unit_factor("furlongs")


def test_a_wrong_unit_is_noticed() -> None:
    """The same claim with a unit left out must not pass."""
    from dataclasses import replace

    claim = next(c for c in claims("tariff") if c.unit == "usd/mtok")
    wrong = replace(claim, unit="usd")
    point = wrong.points(1)[0]
    moved, factor = wrong.scaled(point)
    assert not close(wrong.value(moved), wrong.value(point) * factor, 1e-6)
