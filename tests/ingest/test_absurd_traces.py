"""Traces whose numbers or nesting nothing real has: one message, never a traceback."""

from __future__ import annotations

import pytest

from capmodel.errors import IngestError
from capmodel.ingest.sessions import read_sessions

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "session,input_tokens\na,0\na,0\n", "no request has prompt tokens"),
        ("a.csv", "session,input_tokens\na,5\na,1e300\n", r"request 2: input_tokens is 1e\+300"),
        ("a.csv", "session,input_tokens,agent\na,5,1e300\n", r"agent is 1e\+300"),
        ("a.jsonl", f'{{"a":{DEEP}\n', "expected a JSON object"),
        ("a.json", f'{{"requests":{DEEP}\n', "nested so deep"),
        ("a.jsonl", f'{{"metadata":1}}\n{{"metadata":{DEEP}\n', "metadata and metrics"),
        ("a.yaml", "data: {shared_prefix: {num_groups: 1" + "0" * 400 + "}}", "num_groups: needs"),
    ],
)
def test_absurd_traces_are_refused(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(IngestError, match=message):
        read_sessions(path)


def test_a_nested_record_after_a_good_one_is_named_by_its_line(tmp_path):
    path = tmp_path / "run.jsonl"
    good = (
        '{"metadata":{"request_start_ns":1,"request_end_ns":2},'
        '"metrics":{"input_sequence_length":{"value":5}}}'
    )
    path.write_text(f'{good}\n{{"metadata":{DEEP}\n')
    with pytest.raises(IngestError, match=r"run\.jsonl:2: .*nested so deep"):
        read_sessions(path)


def test_an_integer_beyond_floats_is_refused(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{"requests":[{"t":0,"in":1' + "0" * 400 + "}]}")
    with pytest.raises(IngestError, match="finite number"):
        read_sessions(path)


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("session,input_tokens\na,5\n", encoding="utf-8-sig")
    assert read_sessions(path).input_tokens.tolist() == [5.0]
