"""The flow of C sessions tabulated over the miss fraction, so that fixed points cost lookups only.

The queue knows the composition through two numbers: the share of reusable tokens to compute again,
and the share to load from a tier. Both lie in [0, 1], so one small table per concurrency serves
every composition, every trial cycle time, and every level of the queue model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from .amva import Flow

FloatArray = npt.NDArray[np.float64]

# (miss fraction, link seconds per request) -> flow
QueueModel = Callable[[FloatArray, FloatArray], Flow]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTable:
    """Flow over a grid of computed and loaded shares.

    Parameters
    ----------
    miss_root : ndarray
        Grid of the square root of the computed share, denser where misses begin [1].
    load : ndarray
        Grid of the loaded share; one zero without a tier [1].
    values : ndarray, shape (fields, miss, load)
        Logarithms of the positive flow fields, in the order of `Flow`.
    """

    miss_root: FloatArray
    load: FloatArray
    values: FloatArray

    def __call__(self, miss: FloatArray, load: FloatArray) -> Flow:
        """Return the flow at computed share `miss` and loaded share `load`, by interpolation."""
        row, row_share = _locate(self.miss_root, np.sqrt(np.clip(miss, 0.0, 1.0)))
        low = self.values[:, row, 0]
        high = self.values[:, np.minimum(row + 1, len(self.miss_root) - 1), 0]
        if len(self.load) > 1:
            column, share = _locate(self.load, np.clip(load, 0.0, 1.0))
            right = np.minimum(column + 1, len(self.load) - 1)
            above = np.minimum(row + 1, len(self.miss_root) - 1)
            low = self.values[:, row, column] * (1 - share) + self.values[:, row, right] * share
            high = (
                self.values[:, above, column] * (1 - share) + self.values[:, above, right] * share
            )
        mixed = np.exp(low + (high - low) * row_share)
        mixed[mixed < 1e-20] = 0.0  # a zero was tabulated as a tiny logarithm
        return Flow(**{f.name: mixed[i] for i, f in enumerate(fields(Flow))})


def _locate(grid: FloatArray, x: FloatArray) -> tuple[npt.NDArray[np.intp], FloatArray]:
    cell = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, max(len(grid) - 2, 0))
    if len(grid) == 1:
        return cell, np.zeros_like(x)
    return cell, (x - grid[cell]) / (grid[cell + 1] - grid[cell])


def tabulate(queue: QueueModel, link_s: float, points: int = 57, load_points: int = 9) -> FlowTable:
    """Return the table of a queue model.

    Parameters
    ----------
    queue : callable
        Flow at arrays of miss fraction and of link seconds per request.
    link_s : float
        Link seconds of a request whose whole reusable prefix is loaded, 0 without a tier [s].
    points, load_points : int
        Grid sizes [1].
    """
    root = np.linspace(0.0, 1.0, points)
    load = np.linspace(0.0, 1.0, load_points) if link_s > 0 else np.zeros(1)
    miss, loaded = np.meshgrid(root**2, load, indexing="ij")
    flow = queue(miss.ravel(), loaded.ravel() * link_s)
    values = np.stack([getattr(flow, f.name).reshape(miss.shape) for f in fields(Flow)])
    return FlowTable(miss_root=root, load=load, values=np.log(np.maximum(values, 1e-30)))
