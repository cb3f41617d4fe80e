"""The session table: what every request of every recorded session asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from ..ingest.columns import SessionColumns

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

GAP_PRESETS = ("benchmark", "production")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTable:
    """Requests in columns, sessions one after the other.

    Parameters
    ----------
    session_starts : ndarray of int, shape (sessions + 1,)
        Row where each session begins, and the number of rows at the end [1].
    input_tokens, prefix_tokens, recent_prefix_tokens : ndarray, shape (rows,)
        Prompt, its reusable prefix, and the part of the prefix that the previous request
        touched last [tokens].
    prefix_lag : ndarray of int
        Requests back to the last touch of the rest of the prefix [1].
    output_tokens : ndarray
        Completion [tokens].
    think_s, service_s : ndarray
        Gap before the request and recorded service time [s].
    name : str
        Where the rows came from.
    notes : tuple of str
        What was assumed on the way.
    """

    session_starts: IntArray
    input_tokens: FloatArray
    prefix_tokens: FloatArray
    recent_prefix_tokens: FloatArray
    prefix_lag: IntArray
    output_tokens: FloatArray
    think_s: FloatArray
    service_s: FloatArray
    name: str = "sessions"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = self.input_tokens.size
        if rows == 0 or self.session_starts[-1] != rows or np.any(np.diff(self.session_starts) < 1):
            raise SpecError("a session table needs sessions of at least one request each.")
        for name in ("input_tokens", "prefix_tokens", "output_tokens", "think_s", "service_s"):
            column = getattr(self, name)
            if column.size != rows or not np.all(np.isfinite(column)) or np.any(column < 0):
                raise SpecError(f"{name}: every row needs a finite, nonnegative value.", field=name)
        if np.any(self.prefix_tokens > self.input_tokens):
            raise SpecError("a reusable prefix cannot exceed its prompt.", field="prefix_tokens")
        turn = np.arange(rows) - np.repeat(self.session_starts[:-1], np.diff(self.session_starts))
        lost = (self.prefix_tokens > 0) & ((self.prefix_lag < 1) | (self.prefix_lag > turn))
        if np.any(lost):
            row = int(np.flatnonzero(lost)[0])
            raise SpecError(
                f"row {row}: a prefix must come from an earlier request of its session.",
                field="prefix_lag",
            )

    @classmethod
    def from_columns(cls, columns: SessionColumns) -> SessionTable:
        """Return the table of what a reader found."""
        return cls(
            session_starts=columns.session_starts,
            input_tokens=columns.input_tokens,
            prefix_tokens=columns.prefix_tokens,
            recent_prefix_tokens=columns.recent_prefix_tokens,
            prefix_lag=columns.prefix_lag,
            output_tokens=columns.output_tokens,
            think_s=columns.think_s,
            service_s=columns.service_s,
            name=columns.source,
            notes=columns.notes,
        )

    @property
    def requests(self) -> int:
        """Number of requests [1]."""
        return int(self.input_tokens.size)

    @property
    def sessions(self) -> int:
        """Number of sessions [1]."""
        return int(self.session_starts.size - 1)

    @property
    def is_last(self) -> BoolArray:
        """Whether a request is the last of its session."""
        last = np.zeros(self.requests, dtype=np.bool_)
        last[self.session_starts[1:] - 1] = True
        return last

    @property
    def theoretical_hit_rate(self) -> float:
        """Share of prompt tokens that an infinite cache finds [1]."""
        return float(self.prefix_tokens.sum() / self.input_tokens.sum())

    def following(self, column: FloatArray) -> FloatArray:
        """Return the next request's value of a column, 0 after the last request of a session."""
        shifted = np.append(column[1:], 0.0)
        return np.where(self.is_last, 0.0, shifted)

    def capped(self, think_time_cap_s: float) -> SessionTable:
        """Return the table with every gap cut at the cap [s], as benchmark replays do."""
        if not think_time_cap_s >= 0:
            raise SpecError(
                f"think_time_cap_s must not be negative, got {think_time_cap_s}.",
                field="think_time_cap_s",
            )
        if math.isinf(think_time_cap_s):
            return self
        return replace(self, think_s=np.minimum(self.think_s, think_time_cap_s))

    def split_at_idle(self, idle_limit_s: float) -> SessionTable:
        """Return the table with sessions ended at gaps above the limit [s].

        What follows such a gap is a new session that finds nothing: its lane was given away.
        """
        if not idle_limit_s > 0:
            raise SpecError("idle_limit_s must be positive.", field="idle_limit_s")
        first = np.zeros(self.requests, dtype=np.bool_)
        first[self.session_starts[:-1]] = True
        resumed = (self.think_s > idle_limit_s) & ~first
        starts = np.append(np.flatnonzero(first | resumed), self.requests).astype(np.int64)
        turn = np.arange(self.requests) - np.repeat(starts[:-1], np.diff(starts))
        cut = resumed | (self.prefix_lag > turn)
        return replace(
            self,
            session_starts=starts,
            prefix_tokens=np.where(cut, 0.0, self.prefix_tokens),
            recent_prefix_tokens=np.where(cut, 0.0, self.recent_prefix_tokens),
            prefix_lag=np.where(cut, 0, self.prefix_lag),
            think_s=np.where(resumed, 0.0, self.think_s),
        )

    def with_gaps(
        self, preset: str, *, think_time_cap_s: float = 60.0, idle_limit_s: float = 3600.0
    ) -> SessionTable:
        """Return the table with gaps capped (`benchmark`) or idle sessions ended (`production`)."""
        if preset == "benchmark":
            return self.capped(think_time_cap_s)
        if preset == "production":
            return self.split_at_idle(idle_limit_s)
        raise SpecError(f"unknown gap preset {preset!r}.", field="gaps", nearest=GAP_PRESETS)

    def without_shared_prefix(self, shared_prefix_tokens: float) -> SessionTable:
        """Return the private part of every prompt, beside a prefix that all sessions share.

        The shared blocks are the head of the latest request, so they never leave a cache that
        can hold them: the private parts live in what is left.
        """
        if not shared_prefix_tokens >= 0:
            raise SpecError("shared_prefix_tokens must not be negative.")
        inputs = np.maximum(self.input_tokens - shared_prefix_tokens, 0.0)
        prefix = np.maximum(self.prefix_tokens - shared_prefix_tokens, 0.0)
        recent = np.maximum(self.recent_prefix_tokens - shared_prefix_tokens, 0.0)
        return replace(self, input_tokens=inputs, prefix_tokens=prefix, recent_prefix_tokens=recent)
