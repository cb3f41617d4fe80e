"""Checks of measured points: what cannot be fitted is said, with the points at fault."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..errors import IngestError
from .observation import QUANTITIES, Observation

LONGEST_TPOT_S = 5.0
LONGEST_TTFT_S = 20_000.0
SAME_POINT_APART = 1.5
SAME_SHARE_APART = 0.15
UNIT_RATIO = 50.0


def check_points(points: Sequence[Observation]) -> None:
    """Refuse points that no fit can use.

    Raises
    ------
    IngestError
        For figures outside their domain, mixed runs, a single point, constant columns and
        points that contradict each other.
    """
    for point in points:
        _check_domain(point)
    _check_identity(points)
    if len(points) < 2 or len({p.concurrency for p in points}) < 2:
        raise IngestError(
            f"{len(points)} point(s) at {len({p.concurrency for p in points})} concurrency: a fit "
            "needs at least two concurrencies; use `capmodel compare` for one run.",
            file=points[0].source if points else None,
        )
    _check_contradictions(points)
    _check_constant(points)


def _check_domain(point: Observation) -> None:
    for name, value in point.measured.items():
        kind = QUANTITIES[name]
        if not math.isfinite(value) or value < 0 or (value == 0 and kind != "share"):
            raise IngestError(f"{name} = {value} must be positive and finite.", file=point.source)
        if kind == "share" and value > 1:
            raise IngestError(
                f"{name} = {value} is above 1; is it in percent? Give a share, or name the column "
                f"{name}_pct.",
                file=point.source,
            )
        limit = LONGEST_TPOT_S if name.startswith("tpot") else LONGEST_TTFT_S
        if kind == "time" and value > limit:
            raise IngestError(
                f"{name} = {value} s is beyond {limit:.0f} s; is it in milliseconds? Name the "
                f"column {name[:-2]}_ms.",
                file=point.source,
            )


def _check_identity(points: Sequence[Observation]) -> None:
    seen: dict[str, dict[str, str]] = defaultdict(dict)
    for point in points:
        for key, value in point.identity.items():
            seen[key].setdefault(value, point.source)
    for key, values in seen.items():
        if len(values) > 1:
            listed = ", ".join(f"{value!r} ({source})" for value, source in values.items())
            raise IngestError(f"mixed runs: {key} is {listed}; calibrate each on its own.")


def _check_contradictions(points: Sequence[Observation]) -> None:
    found: dict[tuple[int, str], list[tuple[float, str]]] = defaultdict(list)
    for point in points:
        for name, value in point.measured.items():
            found[(point.concurrency, name)].append((value, point.source))
    for (concurrency, name), values in found.items():
        low, high = min(values), max(values)
        if QUANTITIES[name] == "share":
            apart = high[0] - low[0] > SAME_SHARE_APART
        else:
            apart = high[0] > SAME_POINT_APART * low[0]
        if apart:
            raise IngestError(
                f"contradicting points at concurrency {concurrency}: {name} is {low[0]:.4g} "
                f"({low[1]}) and {high[0]:.4g} ({high[1]}); keep the run you trust."
            )


def _check_constant(points: Sequence[Observation]) -> None:
    if len({p.concurrency for p in points}) < 3:
        return
    for name, kind in QUANTITIES.items():
        values = [point.measured[name] for point in points if name in point.measured]
        if len(values) == len(points) and len(set(values)) == 1 and kind != "share":
            raise IngestError(
                f"constant column: {name} is {values[0]:.6g} at every concurrency; it looks like a "
                "setting, not a measurement."
            )


def check_units(
    points: Sequence[Observation], predicted: Sequence[Mapping[str, float]], gpus: int
) -> None:
    """Refuse figures so far from the uncalibrated model that their unit must be another.

    Raises
    ------
    IngestError
        Naming the unit that would fit.
    """
    ratios: dict[str, list[float]] = defaultdict(list)
    for point, model in zip(points, predicted, strict=True):
        for name, value in point.measured.items():
            if QUANTITIES[name] != "share" and model.get(name, 0.0) > 0:
                ratios[name].append(value / model[name])
    for name, found in ratios.items():
        middle = sorted(found)[len(found) // 2]
        if max(middle, 1.0 / middle) < UNIT_RATIO:
            continue
        hint = f"{gpus} accelerators" if QUANTITIES[name] == "rate" else "milliseconds"
        raise IngestError(
            f"{name} is {middle:.3g} times what the model expects at every point; check the unit "
            f"({hint}, tokens against requests)."
        )
