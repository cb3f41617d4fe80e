"""Where measured curves fall off the cliff, and where the model says they do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .agentic_prediction import Prediction
from .measured_point import MeasuredPoint

HALF = 0.5


def cliff_table(rows: Iterable[tuple[MeasuredPoint, Prediction]]) -> dict[str, Any]:
    """Return curves whose measured hits cross half of the ceiling, on their own grid.

    Parameters
    ----------
    rows : iterable of (point, prediction)
        Solved points with measured hits.

    Notes
    -----
    The cliff of a curve is its smallest measured concurrency with under half of the theoretical
    hits; the prediction is read on the same grid, so that an error counts grid steps.
    """
    curves: dict[tuple[object, ...], list[tuple[MeasuredPoint, Prediction]]] = defaultdict(list)
    for point, predicted in rows:
        if point.hit_rate is not None and point.scenario is not None:
            tier = point.scenario.deployment.offload
            curves[(*point.curve, tier is not None)].append((point, predicted))
    found: list[dict[str, Any]] = []
    for members in curves.values():
        members.sort(key=lambda row: row[0].concurrency)
        grid = sorted({point.concurrency for point, _ in members})
        measured = _first(members, measured=True)
        if len(grid) < 2 or measured is None or measured == grid[0]:
            continue
        modelled = _first(members, measured=False)
        end = grid.index(modelled) if modelled is not None else len(grid)
        found.append(
            {
                "ids": [point.id for point, _ in members],
                "grid": grid,
                "measured_cliff": measured,
                "predicted_cliff": modelled,
                "grid_steps_apart": abs(end - grid.index(measured)),
            }
        )
    within = sum(row["grid_steps_apart"] <= 1 for row in found)
    return {"n": len(found), "within_one_step": within, "rows": found}


def _first(members: Iterable[tuple[MeasuredPoint, Prediction]], *, measured: bool) -> int | None:
    for point, predicted in members:
        ceiling = point.theoretical_hit_rate or predicted.theoretical_hit_rate
        hits = point.hit_rate if measured else predicted.hit_rate
        if hits is not None and hits < HALF * ceiling:
            return point.concurrency
    return None
