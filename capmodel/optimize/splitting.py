"""Where to split a range of sessions, and what solved rates say about the side of the peak."""

from __future__ import annotations

import math

# A rate must exceed another by this to show on which side of the peak it lies: solver's error.
SURE = 1e-4


def sides_of_peak(line: dict[int, float], few: int, many: int) -> list[tuple[int, int]]:
    """Pairs (witness, farther) that show `few` to `many` to lie beyond the witness."""
    pairs = []
    rates = sorted(line.items())
    highest = 0.0
    for at, (sessions, rate) in enumerate(rates):
        if sessions <= few and highest > rate * (1.0 + SURE):
            pairs.append((sessions, max(rates[:at], key=_rate)[0]))
        highest = max(highest, rate)
    highest = 0.0
    for at, (sessions, rate) in reversed(list(enumerate(rates))):
        if sessions >= many and highest > rate * (1.0 + SURE):
            pairs.append((sessions, max(rates[at + 1 :], key=_rate)[0]))
        highest = max(highest, rate)
    return sorted(pairs, key=lambda pair: line[pair[0]])


def _rate(item: tuple[int, float]) -> float:
    return item[1]


def middle_of(few: int, many: int) -> int:
    """Where to split a range: geometrically while it is wide, so that its scale is found first."""
    if many > 2 * (few + 1):
        return min(max(round(math.sqrt((few + 1) * many)), few + 1), many - 1)
    return (few + 1 + many) // 2
