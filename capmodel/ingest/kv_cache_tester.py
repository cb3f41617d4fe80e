"""kv-cache-tester traces: one JSON file per session, requests with their block hashes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import IngestError
from .columns import ColumnBuilder, SessionColumns
from .json_lines import number
from .line_stream import LineStream

_DEFAULT_BLOCK_TOKENS = 64


def _document(path: Path) -> tuple[dict[str, Any], LineStream]:
    stream = LineStream(path)
    text = "".join(line for _, line in stream)
    try:
        item = json.loads(text)
    except json.JSONDecodeError as error:
        stream.line = error.lineno
        raise stream.error(f"expected a JSON trace: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise stream.error("expected a JSON trace, not one nested so deep or so long.") from error
    stream.line = 1
    if not isinstance(item, dict) or not isinstance(item.get("requests"), list):
        raise stream.error("expected an object with a list of requests.")
    return item, stream


def _serial(
    requests: list[Any], stream: LineStream, agent: int = 0
) -> Iterator[tuple[float, int, dict[str, Any]]]:
    """Yield (start, agent, request), sub-agents inlined; `t` counts from the session's start."""
    agents = agent
    for index, item in enumerate(requests):
        if not isinstance(item, dict):
            raise stream.error(f"request {index}: expected an object.")
        began = number(item, "t", stream, 0.0)
        if item.get("type") == "subagent" or "requests" in item:
            agents += 1
            inner = item.get("requests")
            if not isinstance(inner, list):
                raise stream.error(f"request {index}: a sub-agent needs a list of requests.")
            yield from _serial(inner, stream, agents)
        else:
            yield began, agent, item


def _add_session(builder: ColumnBuilder, path: Path) -> int:
    document, stream = _document(path)
    block = int(number(document, "block_size", stream, _DEFAULT_BLOCK_TOKENS))
    if block < 1:
        raise stream.error("block_size must be at least 1.")
    rows = sorted(_serial(document["requests"], stream), key=lambda row: row[0])
    last_touch: dict[int, int] = {}
    ended = 0.0
    for index, (began, agent, item) in enumerate(rows):
        tokens = number(item, "in", stream)
        blocks = item.get("hash_ids", [])
        if not isinstance(blocks, list) or not all(isinstance(b, int) for b in blocks):
            raise stream.error(f"request {index}: hash_ids must be whole numbers.")
        prefix, recent, lag = 0.0, 0.0, 0
        for key in blocks:
            if key not in last_touch:
                break
            prefix += block
            back = index - last_touch[key]
            recent += block * (back == 1)
            lag = max(lag, back)
        service = number(item, "api_time", stream, 0.0)
        if index == 0:
            builder.start_session()
        default_gap = max(began - ended, 0.0) if index else 0.0
        builder.add(
            input_tokens=tokens,
            prefix_tokens=min(prefix, tokens),
            recent_prefix_tokens=min(recent, tokens),
            prefix_lag=lag,
            output_tokens=number(item, "out", stream, 0.0),
            think_s=number(item, "think_time", stream, default_gap) if index else 0.0,
            service_s=service,
            agent=agent,
        )
        for key in blocks:
            last_touch[key] = index
        ended = max(ended, began + service)
    return len(rows)


def read_kv_cache_tester(path: str | Path) -> SessionColumns:
    """Return the sessions of a trace file, or of every ``*.json`` in a folder.

    Raises
    ------
    IngestError
        With the file at fault, and its line where JSON itself is broken.
    """
    root = Path(path)
    files = sorted(root.glob("*.json")) if root.is_dir() else [root]
    builder = ColumnBuilder()
    empty = sum(_add_session(builder, file) == 0 for file in files)
    if len(builder) == 0:
        raise IngestError("no requests found.", file=str(path))
    notes = [f"{empty} sessions without requests left out"] if empty else []
    return builder.columns(str(path), notes)
