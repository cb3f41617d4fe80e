"""Human numbers at the edge: decimal and binary prefixes, refusals."""

from __future__ import annotations

import pytest

from capmodel.errors import SpecError
from capmodel.spec.node import split_node_name
from capmodel.units import format_bytes, format_count, format_seconds, parse_bytes, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("80 GB", 80e9),
        ("80 GiB", 80 * 2**30),
        ("1889GB", 1889e9),
        ("42.23GiB", 42.23 * 2**30),
        ("1_000", 1000.0),
        ("2.5e3 kB", 2.5e6),
        (17, 17.0),
    ],
)
def test_bytes(text: str | float, value: float) -> None:
    assert parse_bytes(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["", "GB", "-1 GB", "nan", "inf GB", "1e999", "3 apples", True])
def test_bad_bytes_are_refused(text: object) -> None:
    with pytest.raises(SpecError):
        parse_bytes(text)  # type: ignore[arg-type]


def test_counts_and_rates() -> None:
    assert parse_quantity("3.25M tokens", "tokens") == 3.25e6
    assert parse_quantity("13500 TFLOP/s", "FLOP/s") == 13500e12
    assert parse_quantity("50GB/s", "B/s") == 50e9


def test_formats() -> None:
    assert format_bytes(42.23 * 2**30) == "42.23 GiB"
    assert format_count(3.249215e6) == "3.25M"
    assert format_seconds(0.0851) == "85.1 ms"
    assert format_seconds(3.42) == "3.42 s"


def test_node_names() -> None:
    assert split_node_name("8xB300") == (8, "B300")
    assert split_node_name(" 4 x H100-80GB ") == (4, "H100-80GB")
    for bad in ("B300", "0xB300", "8B300", "8x", ""):
        with pytest.raises(SpecError):
            split_node_name(bad)
