"""The flow of C sessions tabulated, so that fixed points cost lookups only.

The queue knows a composition through three numbers: the share of reusable tokens to compute again,
the share to load from a tier, and how long contexts are relative to their mean. One small table per
concurrency serves every composition, every trial cycle time, and every level of the queue model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from .amva import Flow

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

# (miss fraction, link seconds per request) -> flow
QueueModel = Callable[[FloatArray, FloatArray], Flow]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTable:
    """Flow over a grid of context scales, computed shares and loaded shares.

    Parameters
    ----------
    log_scale : ndarray
        Grid of the logarithm of context length over its mean [1].
    miss_root : ndarray
        Grid of the square root of the computed share, denser where misses begin [1].
    load : ndarray
        Grid of the loaded share; one zero without a tier [1].
    values : ndarray, shape (fields, scale, miss, load)
        Logarithms of the flow fields, in the order of `Flow`.
    think_s : float
        Mean think time [s].
    """

    log_scale: FloatArray
    miss_root: FloatArray
    load: FloatArray
    values: FloatArray
    think_s: float

    def __call__(self, scale: FloatArray, miss: FloatArray, load: FloatArray) -> Flow:
        """Return the flow at context scale, computed share and loaded share, multilinear."""
        cells = [
            _locate(self.log_scale, np.log(scale)),
            _locate(self.miss_root, np.sqrt(np.clip(miss, 0.0, 1.0))),
            _locate(self.load, np.clip(load, 0.0, 1.0)),
        ]
        mixed = np.zeros((len(self.values), len(miss)))
        for corner in range(8):
            weight = np.ones(len(miss))
            picks = []
            for axis, (cell, upper, share) in enumerate(cells):
                high = bool(corner >> axis & 1)
                weight = weight * (share if high else 1.0 - share)
                picks.append(upper if high else cell)
            if weight.any():
                mixed += weight * self.values[:, picks[0], picks[1], picks[2]]
        mixed = np.exp(mixed)
        mixed[mixed < 1e-20] = 0.0  # a zero was tabulated as a tiny logarithm
        parts = {f.name: mixed[i] for i, f in enumerate(fields(Flow))}
        # Waiting is what the cycle leaves, so that the parts add up between the grid points too.
        served = self.think_s + parts["load_s"] + parts["prefill_s"] + parts["decode_s"]
        parts["wait_s"] = np.maximum(parts["cycle_s"] - served, 0.0)
        return Flow(**parts)


def _locate(grid: FloatArray, x: FloatArray) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return the cell below x, the one above, and the share of the way, clipped to the grid."""
    if len(grid) == 1:
        zero = np.zeros(len(x), dtype=np.intp)
        return zero, zero, np.zeros(len(x))
    cell = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, len(grid) - 2)
    share = np.clip((x - grid[cell]) / (grid[cell + 1] - grid[cell]), 0.0, 1.0)
    return cell, cell + 1, share


def tabulate(
    queues: Sequence[QueueModel],
    scales: FloatArray,
    link_s: FloatArray,
    think_s: float,
    points: int = 41,
    load_points: int = 7,
) -> FlowTable:
    """Return the table of a queue model at several context scales.

    Parameters
    ----------
    queues : sequence of callable
        Flow at arrays of miss fraction and of link seconds per request, one per scale.
    scales : ndarray
        Context length over its mean, rising [1].
    link_s : ndarray
        Link seconds of a request whose whole reusable prefix is loaded, per scale; 0 without a
        tier [s].
    think_s : float
        Mean think time [s].
    points, load_points : int
        Grid sizes [1].
    """
    root = np.linspace(0.0, 1.0, points)
    load = np.linspace(0.0, 1.0, load_points) if link_s.any() else np.zeros(1)
    miss, loaded = np.meshgrid(root**2, load, indexing="ij")
    layers = []
    for queue, seconds in zip(queues, link_s, strict=True):
        flow = queue(miss.ravel(), loaded.ravel() * seconds)
        layers.append([getattr(flow, f.name).reshape(miss.shape) for f in fields(Flow)])
    values = np.log(np.maximum(np.asarray(layers), 1e-30)).swapaxes(0, 1)
    return FlowTable(
        log_scale=np.log(scales), miss_root=root, load=load, values=values, think_s=think_s
    )
