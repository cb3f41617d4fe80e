"""Readers: the same point from five formats, and the line at fault for bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capmodel.calibrate.observation import Observation
from capmodel.calibrate.point_files import read_points, read_window
from capmodel.calibrate.points_csv import quantity_of
from capmodel.errors import IngestError

SCRAPE = """# HELP vllm:prompt_tokens_total tokens
vllm:prompt_tokens_total{{model_name="m"}} {prompt}
vllm:generation_tokens_total{{model_name="m"}} {output}
vllm:request_success_total{{finished_reason="stop",model_name="m"}} {requests}
vllm:request_success_total{{finished_reason="length",model_name="m"}} 0
vllm:prefix_cache_queries_total{{model_name="m"}} {prompt}
vllm:prefix_cache_hits_total{{model_name="m"}} {hits}
vllm:num_requests_running{{model_name="m"}} 4
vllm:time_to_first_token_seconds_sum{{model_name="m"}} {ttft}
vllm:time_to_first_token_seconds_count{{model_name="m"}} {requests}
vllm:cache_config_info{{block_size="16",num_gpu_blocks="1000"}} 1.0
"""


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def one(path: Path, **options: int) -> Observation:
    (found,) = read_points([path], gpus=8, **options)
    return found


def test_five_formats_give_the_same_rate_and_ttft(tmp_path: Path) -> None:
    csv = write(tmp_path / "a.csv", "conc,output_tokens_per_s_per_gpu,ttft_mean_ms\n16,30,850\n")
    agg = {"hw": "b300", "conc": 16, "num_gpus": 8, "tput_per_gpu": 4500.0,
           "output_tput_per_gpu": 30.0, "mean_ttft": 0.85}  # fmt: skip
    aiperf = {
        "output_token_throughput": {"unit": "tokens/sec", "avg": 240.0},
        "time_to_first_token": {"unit": "ms", "avg": 850.0},
        "input_config": {"loadgen": {"concurrency": 16}},
    }
    guidellm = {
        "benchmarks": [
            {
                "config": {"strategy": {"type_": "concurrent", "streams": 16}},
                "metrics": {
                    "output_tokens_per_second": {"successful": {"mean": 240.0}},
                    "time_to_first_token_ms": {"successful": {"mean": 850.0}},
                    "time_per_output_token_ms": {"successful": {"mean": 99.0}},
                },
            }
        ]
    }
    perf = {
        "load_summary": {"concurrency": 16},
        "successes": {
            "throughput": {"output_tokens_per_sec": 240.0},
            "latency": {"time_to_first_token": {"mean": 0.85}},
        },
    }
    files = [csv] + [
        write(tmp_path / f"{at}.json", row) for at, row in enumerate((agg, aiperf, guidellm, perf))
    ]
    for file in files:
        found = one(file)
        assert found.concurrency == 16
        assert found.measured["output_tokens_per_s"] == pytest.approx(240.0)
        assert found.measured["ttft_mean_s"] == pytest.approx(0.85)
    # GuideLLM's time per output token is end-to-end time over tokens: not the gap between tokens.
    assert "tpot_mean_s" not in one(files[3]).measured


@pytest.mark.parametrize(
    ("column", "quantity", "factor"),
    [
        ("output_tokens_per_s", "output_tokens_per_s", 1.0),
        ("tput_per_gpu", "total_tokens_per_s", 8.0),
        ("output_tput_tok_s", "output_tokens_per_s", 1.0),
        ("tpot_ms", "tpot_mean_s", 1e-3),
        ("TTFT_p90_ms", "ttft_p90_s", 1e-3),
        ("median_ttft_ms", "ttft_p50_s", 1e-3),
        ("hit_rate_pct", "hit_rate", 1e-2),
        ("hbm_hit_rate", "hit_rate_hbm", 1.0),
    ],
)
def test_a_column_is_known_by_what_benchmarks_call_it(
    column: str, quantity: str, factor: float
) -> None:
    assert quantity_of(column, 8) == (quantity, pytest.approx(factor))


def test_a_column_of_another_kind_is_none() -> None:
    assert quantity_of("comment", 8) is None


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "output_tokens_per_s\n5\n", "concurrency"),
        ("a.csv", "concurrency,speed\n5,1\n", "no column is a known quantity"),
        ("a.csv", "concurrency,output_tokens_per_s\n5,fast\n", "a.csv:2"),
        ("a.csv", "concurrency,output_tokens_per_s\n2.5,9\n", "whole number"),
        ("a.csv", "concurrency,output_tokens_per_s\n", "no points"),
        ("a.json", "{", "not JSON"),
        ("a.json", "{}", "none of"),
        ("a.json", '{"tput_per_gpu": 4.0}', "give it with -c"),
        ("a.xlsx", "", "expected .csv"),
        ("a.prom", "vllm:x 1\n", "give two"),
    ],
)
def test_files_that_hold_something_else_are_refused(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    with pytest.raises(IngestError, match=said):
        read_points([write(tmp_path / name, content)], gpus=8)


def scrape(path: Path, **values: float) -> Path:
    return write(path, SCRAPE.format(**values))


def test_two_scrapes_give_rates_and_hits_of_the_time_between(tmp_path: Path) -> None:
    first = scrape(tmp_path / "1.prom", prompt=1e6, output=1e4, requests=10, hits=1e5, ttft=9)
    second = scrape(tmp_path / "2.prom", prompt=3e6, output=3e4, requests=30, hits=1.9e6, ttft=29)
    found = read_window([first, second], 100.0)
    assert found.requests_per_s == pytest.approx(0.2)
    assert found.prompt_tokens_per_s == pytest.approx(2e4)
    assert found.hit_rate == pytest.approx(0.9)
    assert found.ttft_mean_s == pytest.approx(1.0)
    assert found.pool_tokens == 16_000
    (point,) = read_points([first, second], gpus=8, concurrency=6, seconds=100.0)
    assert point.concurrency == 6


def test_scrapes_in_the_wrong_order_or_without_a_time_are_refused(tmp_path: Path) -> None:
    first = scrape(tmp_path / "1.prom", prompt=1e6, output=1e4, requests=10, hits=1e5, ttft=9)
    second = scrape(tmp_path / "2.prom", prompt=3e6, output=3e4, requests=30, hits=1.9e6, ttft=29)
    with pytest.raises(IngestError, match="fell from"):
        read_window([second, first], 100.0)
    with pytest.raises(IngestError, match="--seconds"):
        read_window([first, second], None)
