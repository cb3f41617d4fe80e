"""The exact level: the closed think-prefill-decode chain, solved level by level.

State (i, phase, j): i requests at the prefill server, the phase of the one in service (a hit or a
full miss, Erlang where its time varies little), j decoding, the rest thinking. Arrivals raise i,
completions lower it, so the chain is a level-dependent quasi-birth-death process and linear level
reduction solves it with one small factorisation per level, for all miss fractions at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from . import amva
from .amva import Flow
from .service_demand import ServiceDemand

FloatArray = npt.NDArray[np.float64]

LARGEST_CONCURRENCY = 96
# Sessions that do not think return at once; the chain needs some time between.
LEAST_THINK_S = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phases:
    """Service phases: rate per phase and decode count [1/s], steps per second beside it, ends."""

    rate: FloatArray  # (n, phases, j)
    pace: FloatArray  # (n, phases, j) decode steps per second while this phase is in service
    first: tuple[int, int]
    last: tuple[int, int]


def _erlang_order(seconds: float, second_moment: float) -> int:
    """Phases that match a squared coefficient of variation of 1 or of 1/2 [1]."""
    variation = second_moment / seconds**2 - 1.0
    return 2 if variation < 0.7 else 1


def _phases(
    demand: ServiceDemand,
    sequences: FloatArray,
    room: FloatArray,
    idle_pace: FloatArray,
    miss_size: FloatArray,
) -> _Phases:
    """Hit phases, then those of a request that has lost `miss_size` of its reusable tokens."""
    rates: list[FloatArray] = []
    paces: list[FloatArray] = []
    first, last = [], []
    hit_s, miss_s, hit_steps, miss_steps = (
        np.interp(sequences, demand.batch, curve)
        for curve in (
            demand.hit.seconds, demand.miss.seconds, demand.hit.steps, demand.miss.steps,
        )
    )  # fmt: skip
    size = miss_size[:, None]
    kinds = (
        (demand.hit, hit_s + 0.0 * size, hit_steps + 0.0 * size),
        (demand.miss, hit_s + size * (miss_s - hit_s), hit_steps + size * (miss_steps - hit_steps)),
    )
    for kind, seconds, steps in kinds:
        order = _erlang_order(float(kind.seconds[0]), float(kind.seconds_squared[0]))
        first.append(len(rates))
        rates += [order / seconds * room] * order
        paces += [room * steps / seconds + (1.0 - room) * idle_pace] * order
        last.append(len(rates) - 1)
    return _Phases(
        rate=np.stack(rates, axis=1),
        pace=np.stack(paces, axis=1),
        first=(first[0], first[1]),
        last=(last[0], last[1]),
    )


def solve(
    demand: ServiceDemand,
    miss: FloatArray,
    load_s: FloatArray,
    concurrency: int,
    running_limit: float = np.inf,
    miss_size: FloatArray | float = 1.0,
) -> Flow:
    """Return the flow of C sessions at given miss fractions, from the stationary chain.

    Parameters
    ----------
    demand, miss, load_s, concurrency, running_limit, miss_size
        As in `amva.solve`.

    Raises
    ------
    SpecError
        If the concurrency is above 96, where the chain is too large to be worth it.

    Notes
    -----
    Thinking ends at rate ``(C - i - j)/Z``, a phase at ``k/PT(j)``, a decode at ``j pace/N`` with
    the pace of a pure decode batch while nobody prefills and one step per mixed step otherwise.
    Exact for: exponential think times and decode lengths, hits and misses exponential or Erlang-2.
    """
    if concurrency > LARGEST_CONCURRENCY:
        raise SpecError(
            f"level 'exact' goes up to {LARGEST_CONCURRENCY} sessions, got {concurrency}; "
            "use --level fast.",
            field="level",
        )
    sequences = np.arange(concurrency + 1, dtype=np.float64)
    # A prefill can run beside j decodes only while there is room for one more, which takes half of
    # its own on average as it fills; without room the server decodes at the pure pace.
    room = np.clip(running_limit + 0.5 - sequences, 0.0, 1.0)
    room[0] = 1.0
    rough = amva.solve(demand, miss, load_s, concurrency, running_limit, miss_size)
    size = np.broadcast_to(np.asarray(miss_size, dtype=np.float64), miss.shape)
    often = np.clip(miss / np.maximum(size, 1e-12), 0.0, 1.0)
    think = np.maximum(demand.think_mean_s + rough.load_s, LEAST_THINK_S)
    step = np.interp(np.maximum(sequences, 1.0), demand.batch, demand.decode_step_s)
    idle_pace = 1.0 / step
    phases = _phases(demand, sequences, room, idle_pace, size)
    factors, levels = _reduce(phases, idle_pace, sequences, demand, often, think, concurrency)
    return _averages(factors, levels, demand, rough, think, concurrency, sequences)


def _reduce(
    phases: _Phases,
    idle_pace: FloatArray,
    sequences: FloatArray,
    demand: ServiceDemand,
    miss: FloatArray,
    think: FloatArray,
    concurrency: int,
) -> tuple[list[FloatArray], FloatArray]:
    """Linear level reduction from the top level down: R matrices and the boundary vector."""
    batch, kinds = phases.rate.shape[:2]
    above: FloatArray | None = None
    factors: list[FloatArray] = []
    for i in range(concurrency, 0, -1):
        width = concurrency - i + 1
        local = _local(phases, sequences[:width], demand, think, i, concurrency, batch)
        if above is not None:
            up = _up(think, i, concurrency, kinds, width, batch)
            local = local + up @ above
        down = _down(phases, miss, i, width, kinds, batch)
        # G-like factor: (-S)^-1 D carries an excursion above level i-1 back to it.
        above = np.asarray(np.linalg.solve(-local, down), dtype=np.float64)
        factors.append(local)
    factors.reverse()
    width = concurrency + 1
    boundary = np.zeros((batch, width, width))
    j = np.arange(width)
    arrive = (concurrency - sequences) / think[:, None]
    finish = sequences * idle_pace / demand.decode_steps
    boundary[:, j, j] = -(arrive + finish)
    boundary[:, j[1:], j[:-1]] = finish[1:]
    start = _start(miss, arrive, phases, width, kinds)
    assert above is not None  # concurrency >= 1
    boundary += start @ above
    # Replace one balance equation by normalisation of the boundary vector.
    system = np.swapaxes(boundary, 1, 2).copy()
    system[:, 0, :] = 1.0
    right = np.zeros((batch, width, 1))
    right[:, 0, 0] = 1.0
    pi = np.asarray(np.linalg.solve(system, right)[:, :, 0], dtype=np.float64)
    return [start, *factors], pi


def _start(
    miss: FloatArray, arrive: FloatArray, phases: _Phases, width: int, kinds: int
) -> FloatArray:
    """Arrivals at an idle server: level 0 to 1, hit or miss."""
    start = np.zeros((len(miss), width, kinds * (width - 1)))
    j = np.arange(width - 1)
    for chance, first in ((1.0 - miss, phases.first[0]), (miss, phases.first[1])):
        start[:, j, first * (width - 1) + j] += chance[:, None] * arrive[:, :-1]
    return start


def _local(
    phases: _Phases,
    sequences: FloatArray,
    demand: ServiceDemand,
    think: FloatArray,
    i: int,
    concurrency: int,
    batch: int,
) -> FloatArray:
    width, kinds = len(sequences), phases.rate.shape[1]
    block = np.zeros((batch, kinds * width, kinds * width))
    j = np.arange(width)
    arrive = (concurrency - i - sequences) / think[:, None]
    for k in range(kinds):
        at = k * width + j
        rate = phases.rate[:, k, :width]
        finish = sequences * phases.pace[:, k, :width] / demand.decode_steps
        block[:, at, at] -= arrive + rate + finish
        block[:, at[1:], at[:-1]] += finish[:, 1:]
        if k not in phases.last:
            block[:, at, at + width] += rate
    return block


def _up(
    think: FloatArray, i: int, concurrency: int, kinds: int, width: int, batch: int
) -> FloatArray:
    up = np.zeros((batch, kinds * width, kinds * (width - 1)))
    j = np.arange(width - 1)
    arrive = (concurrency - i - j) / think[:, None]
    for k in range(kinds):
        up[:, k * width + j, k * (width - 1) + j] = arrive
    return up


def _down(
    phases: _Phases, miss: FloatArray, i: int, width: int, kinds: int, batch: int
) -> FloatArray:
    """Completions: level i to i - 1, one more decoding, the next request a hit or a miss."""
    below = width + 1
    columns = below if i == 1 else kinds * below
    down = np.zeros((batch, kinds * width, columns))
    j = np.arange(width)
    for last in phases.last:
        rate = phases.rate[:, last, :width]
        rows = last * width + j
        if i == 1:
            down[:, rows, j + 1] += rate
            continue
        for chance, first in ((1.0 - miss, phases.first[0]), (miss, phases.first[1])):
            down[:, rows, first * below + j + 1] += chance[:, None] * rate
    return down


def _averages(
    factors: list[FloatArray],
    boundary: FloatArray,
    demand: ServiceDemand,
    rough: Flow,
    think: FloatArray,
    concurrency: int,
    sequences: FloatArray,
) -> Flow:
    start, *local = factors
    batch = len(boundary)
    kinds = local[0].shape[1] // concurrency
    mass = boundary.sum(axis=1)
    decoding = boundary @ sequences
    waiting = np.zeros(batch)
    busy = np.zeros(batch)
    vector = boundary
    for i in range(1, concurrency + 1):
        width = concurrency - i + 1
        up = start if i == 1 else _up(think, i - 1, concurrency, kinds, width + 1, batch)
        flow = np.einsum("bi,bij->bj", vector, up)
        vector = np.linalg.solve(np.swapaxes(-local[i - 1], 1, 2), flow[:, :, None])[:, :, 0]
        level = vector.reshape(batch, kinds, width)
        share = level.sum(axis=(1, 2))
        mass += share
        busy += share
        waiting += (i - 1) * share
        decoding += level.sum(axis=1) @ sequences[:width]
    waiting, busy, decoding = waiting / mass, busy / mass, decoding / mass
    rate = (concurrency - waiting - busy - decoding) / think
    return Flow(
        cycle_s=concurrency / rate,
        wait_s=waiting / rate,
        prefill_s=busy / rate,
        load_s=rough.load_s,
        decode_s=decoding / rate,
        prefill_second_moment=rough.prefill_second_moment,
        decoding=decoding,
        prefill_utilization=busy,
    )
