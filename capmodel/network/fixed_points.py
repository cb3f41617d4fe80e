"""Where a frozen composition settles: every fixed point of the cycle-time map, and its stability.

Misses lengthen the cycle, a longer cycle leaves fewer sessions thinking, and those that wait have
their order in the cache fixed: more misses. The map c -> T(c) is nondecreasing, so its fixed points
lie between T at no misses and T at all misses, the least reached from a warm cache, the greatest
from an empty one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from .amva import Flow

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

GRID = 14
REFINEMENTS = 10
FLAT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One fixed point per composition.

    Parameters
    ----------
    flow : Flow
        Where it settles; arrays over compositions.
    miss, tier_miss : ndarray
        Share of reusable tokens absent from HBM, and absent from every tier [1].
    """

    flow: Flow
    miss: FloatArray
    tier_miss: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPoints:
    """All fixed points: the warm and the cold branch, and the unstable one between where it exists.

    Parameters
    ----------
    warm, cold : Branch
        Least and greatest fixed point of each composition.
    unstable : Branch
        Middle fixed point where there are three, the unique one elsewhere.
    several : ndarray of bool
        Compositions with more than one fixed point.
    residual : float
        Largest relative error of a stable fixed point: the smaller of |T(c)/c - 1| and the
        bracket that is left, since T may jump where the oldest session starts to be evicted [1].
    """

    warm: Branch
    cold: Branch
    unstable: Branch
    several: BoolArray
    residual: float


# (composition index, trial cycle times) -> (flow, miss, tier miss) at those trials.
CycleMap = Callable[[npt.NDArray[np.intp], FloatArray], tuple[Flow, FloatArray, FloatArray]]


def find_all(cycle_map: CycleMap, cycle_low: FloatArray, cycle_high: FloatArray) -> FixedPoints:
    """Return every fixed point of the cycle map, for each composition at once.

    Parameters
    ----------
    cycle_map : callable
        The map, vectorised over pairs of composition index and trial cycle time.
    cycle_low, cycle_high : ndarray, shape (n,)
        Cycle times with no and with all reusable tokens missing [s].

    Notes
    -----
    ``T(c) - c`` is tabulated on a logarithmic grid of 14 points per composition; each sign change
    is refined by bisection and false position in turn. Two roots inside one cell would be missed;
    the grid is finer than the steepest transition met in the tests.
    """
    n = len(cycle_low)
    grid = np.geomspace(cycle_low, np.maximum(cycle_high, cycle_low * (1 + 1e-12)), GRID)
    index = np.broadcast_to(np.arange(n), grid.shape)
    mapped = np.array(grid)
    # A composition that misses nothing even at its slowest has its root at the bottom.
    top, _, _ = cycle_map(np.arange(n), grid[-1])
    mapped[-1] = top.cycle_s
    active = top.cycle_s > cycle_low * (1.0 + FLAT)
    inner, _, _ = cycle_map(index[:-1, active].ravel(), grid[:-1, active].ravel())
    mapped[:-1, active] = inner.cycle_s.reshape(GRID - 1, -1)
    mapped[:-1, ~active] = cycle_low[~active]
    above = mapped - grid > 1e-12 * grid
    above[0], above[-1] = True, False  # T maps [c_low, c_high] into itself
    falls = above[:-1] & ~above[1:]
    rises = ~above[:-1] & above[1:]
    several = np.asarray(rises.any(axis=0))
    first = falls.argmax(axis=0)
    last = GRID - 2 - falls[::-1].argmax(axis=0)
    middle = np.where(several, rises.argmax(axis=0), first)
    columns = np.arange(n)
    cells = np.concatenate([first, last[several], middle[several]])
    owners = np.concatenate([columns, columns[several], columns[several]])
    rising = np.concatenate([np.zeros(n + several.sum(), bool), np.ones(several.sum(), bool)])
    cycle, width = _refine(
        cycle_map,
        owners,
        (grid[cells, owners], grid[cells + 1, owners]),
        (mapped[cells, owners], mapped[cells + 1, owners]),
        rising,
    )
    flow, miss, tier_miss = cycle_map(owners, cycle)
    count = int(several.sum())
    stable = slice(0, n + count)
    gap = np.abs(flow.cycle_s[stable] / cycle[stable] - 1.0)
    residual = float(np.max(np.minimum(gap, width[stable]), initial=0.0))
    warm = np.arange(n)
    cold, between = warm.copy(), warm.copy()
    cold[several] = n + np.arange(count)
    between[several] = n + count + np.arange(count)
    branches = [
        Branch(flow=take(flow, pick), miss=miss[pick], tier_miss=tier_miss[pick])
        for pick in (warm, cold, between)
    ]
    return FixedPoints(
        warm=branches[0],
        cold=branches[1],
        unstable=branches[2],
        several=several,
        residual=residual,
    )


def take(flow: Flow, index: npt.NDArray[np.intp]) -> Flow:
    """Return the entries of a flow at `index`."""
    return Flow(**{f.name: getattr(flow, f.name)[index] for f in fields(flow)})


def _refine(
    cycle_map: CycleMap,
    owners: npt.NDArray[np.intp],
    cells: tuple[FloatArray, FloatArray],
    values: tuple[FloatArray, FloatArray],
    rising: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Close each bracket on its root, in log space; return the root and the bracket left."""
    low, high = np.log(cells[0]), np.log(cells[1])
    gap_low, gap_high = np.log(values[0]) - low, np.log(values[1]) - high
    for step in range(REFINEMENTS):
        span = gap_low - gap_high
        secant = low + (high - low) * np.where(span != 0, gap_low / np.where(span, span, 1.0), 0.5)
        middle = 0.5 * (low + high)
        trial = np.clip(middle if step % 2 else secant, low, high)
        flow, _, _ = cycle_map(owners, np.exp(trial))
        gap = np.log(flow.cycle_s) - trial
        left = (gap > 0) != rising
        low, high = np.where(left, trial, low), np.where(left, high, trial)
        gap_low, gap_high = np.where(left, gap, gap_low), np.where(left, gap_high, gap)
    span = gap_low - gap_high
    root = low + (high - low) * np.where(span != 0, gap_low / np.where(span, span, 1.0), 0.5)
    return np.exp(np.clip(root, low, high)), high - low
