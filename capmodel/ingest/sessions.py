"""Which reader a trace file needs, and the requests it holds."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import IngestError
from .aiperf import read_aiperf
from .columns import SessionColumns
from .kv_cache_tester import read_kv_cache_tester
from .line_stream import LineStream
from .session_csv import read_session_csv
from .shared_prefix import read_shared_prefix

FORMATS = ("session-csv", "kv-cache-tester", "mooncake", "aiperf", "shared-prefix")


def trace_format(path: str | Path) -> str:
    """Return the format of a trace, from its name and its first line."""
    where = Path(path)
    if not where.exists():
        raise IngestError("no such file.", file=str(path))
    if where.is_dir():
        return "kv-cache-tester"
    name = where.name.casefold().removesuffix(".gz")
    if name.endswith((".yaml", ".yml")):
        return "shared-prefix"
    if name.endswith(".csv"):
        return "session-csv"
    stream = LineStream(where)
    first = next((text for _, text in stream if text.strip()), "")
    if not first:
        raise IngestError("the file is empty.", file=str(path), line=1)
    if not first.lstrip().startswith("{"):
        return "session-csv"
    try:
        item = json.loads(first)
    except (ValueError, RecursionError):
        if name.endswith(".jsonl"):
            raise stream.error("expected a JSON object.") from None
        return "kv-cache-tester"
    if "hash_ids" in item and "timestamp" in item:
        return "mooncake"
    if "metadata" in item or "metrics" in item:
        return "aiperf"
    if "requests" in item:
        return "kv-cache-tester"
    if name.endswith(".jsonl"):
        raise stream.error("expected Mooncake (timestamp, hash_ids) or AIPerf (metadata, metrics).")
    return "kv-cache-tester"


def read_sessions(path: str | Path) -> SessionColumns:
    """Return the requests of a trace of sessions, whatever its format.

    Raises
    ------
    IngestError
        With file and line; a Mooncake trace has no sessions and is read by `block_chunks`.
    """
    kind = trace_format(path)
    if kind == "mooncake":
        raise IngestError("a Mooncake trace has blocks but no sessions.", file=str(path))
    readers = {
        "session-csv": read_session_csv,
        "kv-cache-tester": read_kv_cache_tester,
        "aiperf": read_aiperf,
        "shared-prefix": read_shared_prefix,
    }
    return readers[kind](path)
