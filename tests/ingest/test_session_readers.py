"""Readers of session traces: what they read, and what they say about bad files."""

import gzip
import json

import numpy as np
import pytest

from capmodel.errors import IngestError
from capmodel.ingest.line_stream import LineStream
from capmodel.ingest.sessions import read_sessions, trace_format
from capmodel.reuse.session_table import SessionTable

HEADER = (
    "trace,turn,agent,input_tokens,cached_prefix_tokens,cached_prev_tokens,deepest_lag,"
    "output_tokens,think_s,service_s,service_imputed,stop\n"
)
ROWS = [
    "a,0,0,100,0,0,0,10,0.0,1.5,0,tool_use\n",
    "a,1,0,150,64,64,1,20,3.0,2.5,0,tool_use\n",
    "a,2,1,160,128,64,2,20,3.0,2.5,0,end_turn\n",
    "b,0,0,80,0,0,0,5,0.0,1.0,0,tool_use\n",
]


def written(path, *lines):
    path.write_text("".join(lines))
    return path


def test_the_reference_columns_are_read(tmp_path):
    columns = read_sessions(written(tmp_path / "s.csv", HEADER, *ROWS))
    assert columns.session_starts.tolist() == [0, 3, 4]
    assert columns.input_tokens.tolist() == [100, 150, 160, 80]
    assert columns.prefix_lag.tolist() == [0, 1, 2, 0]
    assert columns.recent_prefix_tokens.tolist() == [0, 64, 64, 0]
    assert columns.think_s.tolist() == [0, 3, 3, 0]
    assert columns.agent.tolist() == [0, 0, 1, 0]
    assert columns.notes == ()
    assert SessionTable.from_columns(columns).sessions == 2


def test_gzip_is_recognised_by_content(tmp_path):
    path = tmp_path / "s.csv"
    with gzip.open(path, "wt") as stream:
        stream.write(HEADER + "".join(ROWS))
    assert read_sessions(path).input_tokens.size == 4


def test_a_plain_csv_extends_the_prompt_before(tmp_path):
    path = written(tmp_path / "p.csv", "session,input_tokens,gap_s\n", "x,10,0\n", "x,25,4\n")
    columns = read_sessions(path)
    assert columns.prefix_tokens.tolist() == [0, 10]
    assert columns.think_s.tolist() == [0, 4]
    assert "extend" in columns.notes[0]


@pytest.mark.parametrize(
    ("line", "wrong", "message"),
    [
        (3, "a,1,0,many,64,64,1,20,3.0,2.5,0,x\n", "input_tokens: expected a number"),
        (3, "a,1,0,150,64,64,1,20,-3.0,2.5,0,x\n", "think_s: expected a finite number from 0"),
        (3, "a,1,0,150,64,64,1,20,nan,2.5,0,x\n", "think_s: expected a finite number"),
        (3, "a,0,0,150,64,64,1,20,3.0,2.5,0,x\n", "turn goes back"),
        (3, "a,1.5,0,150,64,64,1,20,3.0,2.5,0,x\n", "whole number"),
        (3, "a,1,0,150,164,64,1,20,3.0,2.5,0,x\n", "exceeds the prompt"),
        (3, "a,1,0,150,64,64,2,20,3.0,2.5,0,x\n", "2 back"),
        (3, "a,1,0,150\n", "expected 12 fields, got 4"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, line, wrong, message):
    path = written(tmp_path / "bad.csv", HEADER, ROWS[0], wrong, ROWS[3])
    with pytest.raises(IngestError, match=message) as caught:
        read_sessions(path)
    assert (caught.value.file, caught.value.line) == (str(path), line)


def test_a_session_that_comes_back_is_an_error(tmp_path):
    path = written(tmp_path / "back.csv", HEADER, ROWS[0], ROWS[3], ROWS[1])
    with pytest.raises(IngestError, match="'a' comes back") as caught:
        read_sessions(path)
    assert caught.value.line == 4


@pytest.mark.parametrize("text", ["", HEADER, "\n\n"])
def test_an_empty_file_is_an_error(tmp_path, text):
    with pytest.raises(IngestError):
        read_sessions(written(tmp_path / "empty.csv", text))


def test_a_missing_column_names_the_nearest(tmp_path):
    path = written(tmp_path / "c.csv", "trace,input_token\n", "a,3\n")
    with pytest.raises(IngestError, match="input_tokens"):
        read_sessions(path)


def test_a_partial_last_line_is_counted_and_not_lost_silently(tmp_path):
    path = written(tmp_path / "cut.csv", HEADER, *ROWS[:2], "a,2,0,16")
    columns = read_sessions(path)
    assert columns.input_tokens.size == 2
    assert columns.notes == ("line 4: partial last line left out (1 row)",)
    whole = written(tmp_path / "whole.csv", HEADER, ROWS[0], ROWS[1].rstrip("\n"))
    columns = read_sessions(whole)
    assert columns.input_tokens.size == 2 and "no line end" in columns.notes[0]


def test_a_truncated_gzip_names_the_line(tmp_path):
    path = tmp_path / "cut.csv.gz"
    rng = np.random.default_rng(0)
    rows = "".join(f"s{i},0,0,{rng.integers(1, 10**9)},0,0,0,1,0,0,0,x\n" for i in range(5000))
    path.write_bytes(gzip.compress((HEADER + rows).encode())[:-2000])
    with pytest.raises(IngestError, match="truncated") as caught:
        read_sessions(path)
    assert caught.value.line > 1000


def test_unpacking_stops_at_a_limit(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" * 100_000))
    with pytest.raises(IngestError, match="more than 1000 bytes"):
        list(LineStream(path, limit_bytes=1000))


def test_bytes_that_are_no_text_are_an_error(tmp_path):
    path = tmp_path / "b.csv"
    path.write_bytes(HEADER.encode() + b"a,\xff\xfe,0\n")
    with pytest.raises(IngestError, match="UTF-8") as caught:
        read_sessions(path)
    assert caught.value.line == 2


def test_kv_cache_tester_files_give_prefixes_from_hashes(tmp_path):
    trace = {
        "id": "t", "block_size": 64,
        "requests": [
            {"t": 0.0, "in": 200, "out": 5, "hash_ids": [1, 2, 3], "api_time": 2.0},
            {"t": 3.0, "in": 250, "out": 6, "hash_ids": [1, 2, 4, 5], "think_time": 1.0,
             "api_time": 1.0},
            {"t": 4.0, "type": "subagent", "requests": [
                {"t": 4.5, "in": 100, "out": 1, "hash_ids": [9, 8], "api_time": 0.5}]},
            {"t": 6.0, "in": 250, "out": 7, "hash_ids": [1, 2, 3, 7], "think_time": 1.0,
             "api_time": 1.0},
        ],
    }  # fmt: skip
    (tmp_path / "trace_1.json").write_text(json.dumps(trace))
    (tmp_path / "trace_2.json").write_text(json.dumps({"id": "u", "requests": []}))
    columns = read_sessions(tmp_path)
    assert columns.prefix_tokens.tolist() == [0, 128, 0, 192]
    # The last request finds blocks 1 and 2 two back, block 3 three back.
    assert columns.prefix_lag.tolist() == [0, 1, 0, 3]
    assert columns.recent_prefix_tokens.tolist() == [0, 128, 0, 0]
    assert columns.agent.tolist() == [0, 0, 1, 0]
    assert columns.service_s.tolist() == [2.0, 1.0, 0.5, 1.0]
    assert columns.notes == ("1 sessions without requests left out",)
    assert SessionTable.from_columns(columns).requests == 4


def test_broken_kv_cache_tester_json_names_the_line(tmp_path):
    path = written(tmp_path / "trace.json", '{\n"requests": [\n{"in": 3,}\n]}')
    with pytest.raises(IngestError) as caught:
        read_sessions(path)
    assert caught.value.line == 3
    with pytest.raises(IngestError, match="list of requests"):
        read_sessions(written(tmp_path / "other.json", '{"id": 3}'))


def aiperf_record(session, start_s, end_s, tokens, **more):
    return {
        "metadata": {
            "conversation_id": session, "request_start_ns": int(start_s * 1e9),
            "request_end_ns": int(end_s * 1e9),
        },
        "metrics": {
            "input_sequence_length": {"value": tokens, "unit": "tokens"},
            "output_sequence_length": {"value": 7, "unit": "tokens"},
        },
        **more,
    }  # fmt: skip


def test_aiperf_records_are_grouped_into_sessions(tmp_path):
    records = [
        aiperf_record("a", 0.0, 2.0, 100),
        aiperf_record("b", 1.0, 2.0, 50),
        aiperf_record("a", 5.0, 6.0, 140),
        aiperf_record("b", 3.0, 4.0, 70, error={"type": "timeout"}),
    ]
    text = "".join(json.dumps(r) + "\n" for r in records) + '{"metadata": {"conv'
    columns = read_sessions(written(tmp_path / "profile_export.jsonl", text))
    assert columns.session_starts.tolist() == [0, 2, 3]
    assert columns.think_s.tolist() == [0.0, 3.0, 0.0]
    assert columns.prefix_tokens.tolist() == [0.0, 100.0, 0.0]
    assert columns.notes[0] == "line 5: partial last line left out (1 record)"
    assert "1 failed" in columns.notes[-1]


def test_aiperf_times_that_run_backwards_are_an_error(tmp_path):
    line = json.dumps(aiperf_record("a", 3.0, 2.0, 100)) + "\n"
    with pytest.raises(IngestError, match="ends before") as caught:
        read_sessions(written(tmp_path / "p.jsonl", line))
    assert caught.value.line == 1


def test_shared_prefix_settings_become_groups(tmp_path):
    text = """
data:
  type: shared_prefix
  shared_prefix: {num_groups: 4, num_prompts_per_group: 3, system_prompt_len: 2048,
                  question_len: 256, output_len: 64}
load:
  stages: [{rate: 2.0, duration: 10}]
"""
    columns = read_sessions(written(tmp_path / "load.yml", text))
    assert columns.session_starts.tolist() == [0, 3, 6, 9, 12]
    assert columns.prefix_tokens[:3].tolist() == [0, 2048, 2048]
    # Four groups at two requests per second: each comes back after two seconds.
    assert columns.think_s[:3].tolist() == [0, 2, 2]
    with pytest.raises(IngestError, match="num_unique_system_prompts"):
        read_sessions(written(tmp_path / "bad.yml", "data: {shared_prefix: {question_len: 1}}"))


def test_formats_are_told_apart(tmp_path):
    assert trace_format(written(tmp_path / "a.csv", HEADER)) == "session-csv"
    record = json.dumps({"timestamp": 0, "input_length": 3, "hash_ids": [1]})
    assert trace_format(written(tmp_path / "m.jsonl", record + "\n")) == "mooncake"
    with pytest.raises(IngestError, match="no such file"):
        trace_format(tmp_path / "none.csv")
    with pytest.raises(IngestError, match="expected Mooncake"):
        trace_format(written(tmp_path / "x.jsonl", '{"a": 1}\n'))
    with pytest.raises(IngestError, match="expected a JSON object"):
        trace_format(written(tmp_path / "y.jsonl", '{"a": \n'))


def test_damaged_files_give_columns_or_one_message(tmp_path):
    rng = np.random.default_rng(0)
    whole = (HEADER + "".join(ROWS)).encode()
    path = tmp_path / "damaged.csv"
    read, refused = 0, 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(data)))
            if rng.random() < 0.5:
                data[at] = int(rng.integers(256))
            else:
                data = data[:at] + data[at + int(rng.integers(1, 12)) :]
        path.write_bytes(bytes(data))
        try:
            SessionTable.from_columns(read_sessions(path))
            read += 1
        except IngestError as error:
            assert error.file == str(path) and error.line is not None
            refused += 1
    assert read > 20 and refused > 100
