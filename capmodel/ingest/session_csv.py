"""Session tables as CSV: the columns of the reference table, or a plain subset of them."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from ..errors import IngestError, nearest_names
from .columns import ColumnBuilder, SessionColumns
from .line_stream import LineStream

# Column of the table -> names it goes by.
NAMES = {
    "session": ("trace", "session", "session_id", "conversation_id"),
    "turn": ("turn",),
    "agent": ("agent",),
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "prefix_tokens": ("cached_prefix_tokens", "prefix_tokens"),
    "recent_prefix_tokens": ("cached_prev_tokens", "recent_prefix_tokens"),
    "prefix_lag": ("deepest_lag", "prefix_lag"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "think_s": ("think_s", "gap_s"),
    "service_s": ("service_s",),
}


def _positions(header: list[str], stream: LineStream) -> dict[str, int]:
    found = {name.strip(): i for i, name in enumerate(header)}
    places = {
        column: next(found[name] for name in names if name in found)
        for column, names in NAMES.items()
        if any(name in found for name in names)
    }
    for needed in ("session", "input_tokens"):
        if needed not in places:
            near = nearest_names(NAMES[needed][0], found)
            hint = f"; nearest: {', '.join(near)}" if near else ""
            raise stream.error(f"expected a column {' or '.join(NAMES[needed][:2])}{hint}.")
    return places


def _number(text: str, column: str, stream: LineStream) -> float:
    try:
        value = float(text)
    except ValueError:
        raise stream.error(f"{column}: expected a number, got {text!r}.") from None
    if not (math.isfinite(value) and value >= 0):
        raise stream.error(f"{column}: expected a finite number from 0, got {text!r}.")
    return value


def _whole(text: str, column: str, stream: LineStream) -> int:
    value = _number(text, column, stream)
    if value != int(value):
        raise stream.error(f"{column}: expected a whole number, got {text!r}.")
    return int(value)


def _fields(text: str, stream: LineStream) -> list[str]:
    try:
        return next(csv.reader([text.rstrip("\r\n")]), [])
    except csv.Error as error:
        raise stream.error(f"expected comma-separated values: {error}.") from error


def _cell(
    row: list[str], places: dict[str, int], column: str, default: float, stream: LineStream
) -> float:
    place = places.get(column)
    return default if place is None else _number(row[place], column, stream)


def read_session_csv(path: str | Path) -> SessionColumns:
    """Return the requests of a CSV file whose first line names the columns.

    `trace` (or `session`) and `input_tokens` are needed. Without a prefix column every request
    is taken to extend the one before it.

    Raises
    ------
    IngestError
        With file and line, for a value that is not what its column holds.
    """
    stream = LineStream(path)
    builder = ColumnBuilder()
    notes: list[str] = []
    places: dict[str, int] = {}
    fields = 0
    seen: set[str] = set()
    session, turn, row_in_session, previous = "", -1, 0, 0.0
    for _, text in stream:
        row = _fields(text, stream)
        if not row:
            continue
        if not places:
            places, fields = _positions(row, stream), len(row)
            continue
        if len(row) != fields:
            if not stream.complete:
                notes.append(f"line {stream.line}: partial last line left out (1 row)")
                continue
            raise stream.error(f"expected {fields} fields, got {len(row)}.")
        if not stream.complete:
            notes.append(f"line {stream.line}: the last line has no line end; kept")

        name = row[places["session"]]
        if name != session or not seen:
            if name in seen:
                raise stream.error(f"session {name!r} comes back after another one; sort by it.")
            seen.add(name)
            session, turn, row_in_session, previous = name, -1, 0, 0.0
            builder.start_session()
        if "turn" in places:
            this_turn = _whole(row[places["turn"]], "turn", stream)
            if this_turn <= turn:
                raise stream.error(f"turn goes back from {turn} to {this_turn}.")
            turn = this_turn
        tokens = _cell(row, places, "input_tokens", 0.0, stream)
        prefix = _cell(row, places, "prefix_tokens", min(previous, tokens), stream)
        if prefix > tokens:
            raise stream.error(f"the reusable prefix {prefix:g} exceeds the prompt {tokens:g}.")
        lag_place = places.get("prefix_lag")
        lag = int(prefix > 0) if lag_place is None else _whole(row[lag_place], "lag", stream)
        if prefix > 0 and not 1 <= lag <= row_in_session:
            raise stream.error(
                f"a prefix of {prefix:g} tokens needs a request {lag} back in the session."
            )
        builder.add(
            input_tokens=tokens,
            prefix_tokens=prefix,
            recent_prefix_tokens=min(
                _cell(row, places, "recent_prefix_tokens", prefix, stream), prefix
            ),
            prefix_lag=lag if prefix > 0 else 0,
            output_tokens=_cell(row, places, "output_tokens", 0.0, stream),
            think_s=_cell(row, places, "think_s", 0.0, stream) if row_in_session else 0.0,
            service_s=_cell(row, places, "service_s", 0.0, stream),
            agent=int(_cell(row, places, "agent", 0.0, stream)),
        )
        row_in_session += 1
        previous = tokens
    if len(builder) == 0:
        raise IngestError("the file has no requests.", file=str(path), line=max(stream.line, 1))
    if "prefix_tokens" not in places:
        notes.append("no prefix column: every request is taken to extend the one before it")
    return builder.columns(str(path), notes)
