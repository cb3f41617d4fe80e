"""JSON lines: one object a line, checked; a partial last line is counted, not lost silently."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .line_stream import LineStream


def objects(stream: LineStream, notes: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines stream; what was left out is added to `notes`."""
    for line, text in stream:
        if not text.strip():
            continue
        try:
            item = json.loads(text)
        except ValueError as error:
            if not stream.complete:
                notes.append(f"line {line}: partial last line left out (1 record)")
                return
            raise stream.error(f"expected a JSON object: {error}.") from error
        except RecursionError as error:
            raise stream.error("expected a JSON object, not one nested so deep.") from error
        if not isinstance(item, dict):
            raise stream.error(f"expected a JSON object, got {type(item).__name__}.")
        yield item


def number(item: Mapping[str, Any], key: str, stream: LineStream, default: Any = None) -> float:
    """Return a finite, nonnegative number of an object, or an error with file and line."""
    value = item.get(key, default)
    if isinstance(value, Mapping):
        value = value.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise stream.error(f"{key}: expected a number, got {value!r}.")
    # Compared first: an integer may have more digits than a float can hold.
    if not (0 <= value <= sys.float_info.max):
        raise stream.error(f"{key}: expected a finite number from 0, got {str(value)[:40]}.")
    return float(value)
