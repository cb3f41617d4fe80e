"""Columns of a session trace: what every reader returns, and nothing it does not need."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..errors import IngestError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# No number of a trace (tokens, seconds, agents, lags) is larger: what is has slipped a unit.
LARGEST_NUMBER = 1e12
_NAMES = (
    "input_tokens", "prefix_tokens", "recent_prefix_tokens", "prefix_lag", "output_tokens",
    "think_s", "service_s", "agent",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionColumns:
    """One row per model request, sessions one after the other, turns in order.

    Parameters
    ----------
    session_starts : ndarray of int, shape (sessions + 1,)
        Row where each session begins; the last entry is the number of rows [1].
    input_tokens, prefix_tokens, recent_prefix_tokens : ndarray, shape (rows,)
        Prompt, its part seen earlier in the session, and the part of that which the previous
        request touched last [tokens].
    prefix_lag : ndarray of int
        How many requests back the deepest reusable part was touched; 0 for none [1].
    output_tokens : ndarray
        Completion [tokens].
    think_s, service_s : ndarray
        Gap before the request, and its recorded service time [s].
    agent : ndarray of int
        0 for the main agent [1].
    source : str
        File or format the rows came from.
    notes : tuple of str
        What the reader assumed or left out.
    """

    session_starts: IntArray
    input_tokens: FloatArray
    prefix_tokens: FloatArray
    recent_prefix_tokens: FloatArray
    prefix_lag: IntArray
    output_tokens: FloatArray
    think_s: FloatArray
    service_s: FloatArray
    agent: IntArray
    source: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)


class ColumnBuilder:
    """Collects rows in flat arrays (72 bytes a row) while a reader streams."""

    def __init__(self) -> None:
        self._numbers = [array("d") for _ in range(8)]
        self._starts = array("q")

    def __len__(self) -> int:
        return len(self._numbers[0])

    def start_session(self) -> None:
        """Open the next session."""
        self._starts.append(len(self))

    def add(
        self,
        *,
        input_tokens: float,
        prefix_tokens: float,
        output_tokens: float,
        think_s: float,
        service_s: float,
        recent_prefix_tokens: float | None = None,
        prefix_lag: int | None = None,
        agent: int = 0,
    ) -> None:
        """Append one request to the open session."""
        lag = int(prefix_tokens > 0) if prefix_lag is None else prefix_lag
        recent = prefix_tokens if recent_prefix_tokens is None else recent_prefix_tokens
        row = (
            input_tokens, prefix_tokens, recent, lag, output_tokens, think_s, service_s, agent,
        )  # fmt: skip
        for column, value in zip(self._numbers, row, strict=True):
            column.append(value)

    def columns(self, source: str, notes: Sequence[str] = ()) -> SessionColumns:
        """Return what was collected.

        Raises
        ------
        IngestError
            For a number that nothing can have, and for requests without any prompt token.
        """
        arrays = [np.frombuffer(column, dtype=np.float64).copy() for column in self._numbers]
        for name, values in zip(_NAMES, arrays, strict=True):
            if values.size and not np.max(values) <= LARGEST_NUMBER:
                row = int(np.argmax(values))
                raise IngestError(
                    f"request {row + 1}: {name} is {values[row]:g}, at most {LARGEST_NUMBER:g}.",
                    file=source,
                )
        if not np.any(arrays[0] > 0):
            raise IngestError("no request has prompt tokens.", file=source)
        starts = np.append(np.frombuffer(self._starts, dtype=np.int64), len(self))
        return SessionColumns(
            session_starts=starts.astype(np.int64),
            input_tokens=arrays[0],
            prefix_tokens=arrays[1],
            recent_prefix_tokens=arrays[2],
            prefix_lag=arrays[3].astype(np.int64),
            output_tokens=arrays[4],
            think_s=arrays[5],
            service_s=arrays[6],
            agent=arrays[7].astype(np.int64),
            source=source,
            notes=tuple(notes),
        )
