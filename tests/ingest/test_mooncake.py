"""Mooncake traces: records, chunks, and what is wrong with bad ones."""

import json

import numpy as np
import pytest

from capmodel.errors import IngestError
from capmodel.ingest.mooncake import block_chunks


def record(stamp, ids, tokens=None):
    tokens = 512 * len(ids) if tokens is None else tokens
    return json.dumps({"timestamp": stamp, "input_length": tokens, "hash_ids": ids}) + "\n"


def written(path, *lines):
    path.write_text("".join(lines))
    return path


def test_chunks_hold_the_whole_trace(tmp_path):
    lines = [record(100 * i, list(range(i + 1))) for i in range(10)]
    chunks = list(block_chunks(written(tmp_path / "t.jsonl", *lines), [], chunk_blocks=12))
    assert len(chunks) > 2
    assert sum(c.time_s.size for c in chunks) == 10
    assert np.concatenate([c.time_s for c in chunks])[-1] == pytest.approx(0.9)
    assert all(c.offsets[-1] == c.block_ids.size for c in chunks)


def test_a_partial_last_line_is_counted(tmp_path):
    notes = []
    path = written(tmp_path / "t.jsonl", record(0, [1]), record(1, [1, 2])[:-9])
    assert sum(c.time_s.size for c in block_chunks(path, notes)) == 1
    assert notes == ["line 2: partial last line left out (1 record)"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (record(-5, [1]), "timestamp: expected a finite number from 0"),
        (record(5, [1]), "goes back"),
        (record(20, []), "hash_ids"),
        (record(20, ["x"]), "whole numbers"),
        (record(20, [1.5]), "whole numbers"),
        (record(20, [1], tokens=600), "do not hold 600 tokens"),
        ('{"timestamp": 20}\n', "input_length"),
        ("[1, 2]\n", "expected a JSON object"),
        ("not json\n", "expected a JSON object"),
    ],
)
def test_bad_records_are_named_by_line(tmp_path, wrong, message):
    path = written(tmp_path / "t.jsonl", record(10, [1]), wrong, record(30, [1]))
    with pytest.raises(IngestError, match=message) as caught:
        list(block_chunks(path, []))
    assert caught.value.line == 2


def test_an_empty_trace_is_an_error(tmp_path):
    with pytest.raises(IngestError, match="no requests"):
        list(block_chunks(written(tmp_path / "t.jsonl"), []))
