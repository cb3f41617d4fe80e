"""Mooncake traces: JSON lines with a timestamp and the ids of the prompt's blocks."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import IngestError
from .json_lines import number, objects
from .line_stream import LineStream

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# The published traces hash 512 tokens a block; the format itself does not say.
BLOCK_TOKENS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChunk:
    """Some consecutive requests of a block trace.

    Parameters
    ----------
    time_s : ndarray, shape (requests,)
        Arrival [s].
    input_tokens : ndarray, shape (requests,)
        Prompt [tokens].
    offsets : ndarray of int, shape (requests + 1,)
        Where each request's blocks begin in `block_ids` [1].
    block_ids : ndarray of int
        Ids in prefix order: equal ids mean equal prefixes.
    """

    time_s: FloatArray
    input_tokens: FloatArray
    offsets: IntArray
    block_ids: IntArray


def block_chunks(
    path: str | Path, notes: list[str], *, block_tokens: int = BLOCK_TOKENS,
    chunk_blocks: int = 1 << 20,
) -> Iterator[BlockChunk]:  # fmt: skip
    """Yield a Mooncake trace in chunks of about a million block references.

    Raises
    ------
    IngestError
        With file and line, for a record that is not one, or a timestamp that goes back.
    """
    stream = LineStream(path)
    time, tokens = array("d"), array("d")
    ids, offsets = array("q"), array("q", [0])
    latest, count = 0.0, 0
    for item in objects(stream, notes):
        stamp = number(item, "timestamp", stream) / 1000.0
        if stamp < latest:
            raise stream.error(f"timestamp goes back from {latest * 1e3:g} to {stamp * 1e3:g} ms.")
        latest = stamp
        prompt = number(item, "input_length", stream)
        blocks = item.get("hash_ids")
        if not isinstance(blocks, list) or not blocks:
            raise stream.error("hash_ids: expected a list of whole numbers.")
        if not (len(blocks) - 1) * block_tokens < max(prompt, 1) <= len(blocks) * block_tokens:
            raise stream.error(
                f"{len(blocks)} blocks of {block_tokens} tokens do not hold {prompt:g} tokens."
            )
        try:
            ids.extend(blocks)
        except (TypeError, OverflowError):
            raise stream.error("hash_ids: expected whole numbers below 2^63.") from None
        offsets.append(len(ids))
        time.append(stamp)
        tokens.append(prompt)
        count += 1
        if len(ids) >= chunk_blocks:
            yield _chunk(time, tokens, offsets, ids)
            time, tokens = array("d"), array("d")
            ids, offsets = array("q"), array("q", [0])
    if time:
        yield _chunk(time, tokens, offsets, ids)
    if count == 0:
        raise IngestError("the file has no requests.", file=str(path), line=max(stream.line, 1))


def _chunk(
    time: array[float], tokens: array[float], offsets: array[int], ids: array[int]
) -> BlockChunk:
    return BlockChunk(
        time_s=np.array(time, dtype=np.float64),
        input_tokens=np.array(tokens, dtype=np.float64),
        offsets=np.array(offsets, dtype=np.int64),
        block_ids=np.array(ids, dtype=np.int64),
    )
