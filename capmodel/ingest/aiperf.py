"""AIPerf runs: `profile_export.jsonl`, one record per request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import IngestError
from .columns import ColumnBuilder, SessionColumns
from .json_lines import number, objects
from .line_stream import LineStream

_NS = 1e-9
_UNITS = {"ms": 1e-3, "s": 1.0, "ns": _NS, "us": 1e-6}


def _seconds(metrics: dict[str, Any], key: str, stream: LineStream) -> float:
    value = metrics.get(key)
    unit = value.get("unit", "ms") if isinstance(value, dict) else "ms"
    if unit not in _UNITS:
        raise stream.error(f"{key}: unknown unit {unit!r}.")
    return number(metrics, key, stream, 0.0) * _UNITS[unit]


def read_aiperf(path: str | Path) -> SessionColumns:
    """Return the requests of an AIPerf record file, grouped by conversation.

    The records do not say what was reusable: a turn is taken to extend the one before it.

    Raises
    ------
    IngestError
        With file and line, for a record that is not one.
    """
    stream = LineStream(path)
    notes: list[str] = []
    sessions: dict[str, list[tuple[float, float, float, float]]] = {}
    failed = 0
    for item in objects(stream, notes):
        metadata, metrics = item.get("metadata"), item.get("metrics")
        if not isinstance(metadata, dict) or not isinstance(metrics, dict):
            raise stream.error("expected a record with metadata and metrics.")
        if item.get("error"):
            failed += 1
            continue
        key = metadata.get("x_correlation_id") or metadata.get("conversation_id")
        name = str(key if key is not None else metadata.get("session_num", stream.line))
        start = number(metadata, "request_start_ns", stream) * _NS
        end = (
            number(metadata, "request_end_ns", stream, -1) * _NS
            if ("request_end_ns" in metadata)
            else start + _seconds(metrics, "request_latency", stream)
        )
        if end < start:
            raise stream.error("the request ends before it starts.")
        row = (
            start, end, number(metrics, "input_sequence_length", stream),
            number(metrics, "output_sequence_length", stream, 0.0),
        )  # fmt: skip
        sessions.setdefault(name, []).append(row)
    if not sessions:
        raise IngestError("no completed requests found.", file=str(path), line=max(stream.line, 1))
    builder = ColumnBuilder()
    for rows in sessions.values():
        builder.start_session()
        previous, ended = 0.0, rows[0][0]
        for start, end, tokens, output in sorted(rows):
            builder.add(
                input_tokens=tokens,
                prefix_tokens=min(previous, tokens),
                output_tokens=output,
                think_s=max(start - ended, 0.0),
                service_s=end - start,
            )
            previous, ended = tokens, end
    notes.append("reusable prefix assumed: every turn extends the one before it")
    if failed:
        notes.append(f"{failed} failed requests left out")
    return builder.columns(str(path), notes)
