"""What a curve is asked of: a workload, sessions, or blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from .. import catalog
from ..catalog.loader import workload_from_mapping
from ..errors import IngestError, SpecError, nearest_names
from ..ingest.sessions import read_sessions, trace_format
from ..spec.workload import Workload
from .session_table import SessionTable


@dataclass(frozen=True, slots=True)
class BlockTraceFile:
    """A trace of blocks on disk; it is streamed, never held."""

    path: str


Source = str | Path | Workload | SessionTable


def _workload_file(path: Path) -> Workload | None:
    """Return the workload in a YAML file, or None where it holds something else."""
    try:
        item = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    if isinstance(item, dict) and "request_tokens" in item:
        return workload_from_mapping({"name": path.stem, **item})
    return None


def resolved_source(source: Source) -> Workload | SessionTable | BlockTraceFile:
    """Return what a name or a path stands for; workloads and tables pass through.

    Raises
    ------
    SpecError
        If the text is neither a catalog name nor a file; nearest names are given.
    IngestError
        If the file is not what it promises to be.
    """
    if isinstance(source, Workload | SessionTable):
        return source
    path = Path(source)
    if not path.exists():
        known = catalog.names("workloads")
        text = str(source)
        if text.casefold() in {name.casefold() for name in known}:
            return catalog.workload(text)
        if path.suffix or "/" in text:
            raise IngestError("no such file.", file=text)
        raise SpecError(
            f"unknown workload {text!r}, and no such file.",
            field="workload",
            nearest=nearest_names(text, known),
        )
    if path.suffix.casefold() in (".yaml", ".yml"):
        workload = _workload_file(path)
        if workload is not None:
            return workload
    if trace_format(path) == "mooncake":
        return BlockTraceFile(str(path))
    return SessionTable.from_columns(read_sessions(path))
