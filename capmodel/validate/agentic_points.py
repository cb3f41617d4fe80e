"""Measured agentic replay points: figures with their source, as the package ships them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

POINTS = Path(__file__).parent / "data" / "agentic_points.csv"

Row = Mapping[str, str]


@cache
def agentic_points() -> tuple[Row, ...]:
    """Return the measured points, one mapping of column to text per row; empty means not stated."""
    with POINTS.open(encoding="utf-8", newline="") as stream:
        return tuple(csv.DictReader(stream))
