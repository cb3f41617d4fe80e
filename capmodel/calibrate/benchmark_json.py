"""Measured points in the result files of InferenceX, AIPerf, GuideLLM and inference-perf."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import IngestError
from .observation import Observation

Object = Mapping[str, Any]
MS = 1e-3


def read_benchmark_json(path: Path, gpus: int, concurrency: int | None) -> list[Observation]:
    """Return the load points of a benchmark's JSON result.

    Parameters
    ----------
    path : Path
        ``agg_*.json``, ``profile_export_aiperf.json``, a GuideLLM report or an inference-perf
        summary.
    gpus : int
        Accelerators, for figures per accelerator [1].
    concurrency : int, optional
        Live sessions where the file does not say.

    Raises
    ------
    IngestError
        If the file is none of them, or lacks a concurrency.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise IngestError(f"cannot be read: {error}", file=str(path)) from error
    except json.JSONDecodeError as error:
        raise IngestError(
            f"is not JSON: {error.msg}.", file=str(path), line=error.lineno
        ) from error
    rows = content if isinstance(content, list) else [content]
    points: list[Observation] = []
    for row in rows:
        if not isinstance(row, dict):
            raise IngestError("expected an object or a list of objects.", file=str(path))
        for recognised, read in FORMATS:
            if recognised(row):
                points += read(row, str(path), gpus, concurrency)
                break
        else:
            raise IngestError(
                "is none of: InferenceX agg, AIPerf export, GuideLLM report, inference-perf "
                "summary.",
                file=str(path),
            )
    if not points:
        raise IngestError("holds no points.", file=str(path))
    return points


def _dig(row: Object, *keys: str) -> float | None:
    value: Any = row
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _observation(
    source: str,
    concurrency: float | None,
    figures: Mapping[str, float | None],
    identity: Mapping[str, str] | None = None,
) -> Observation:
    if concurrency is None or concurrency < 1:
        raise IngestError("does not say its concurrency; give it with -c.", file=source)
    measured = {name: value for name, value in figures.items() if value}
    if not measured:
        raise IngestError("holds no known quantity.", file=source)
    return Observation(
        concurrency=int(concurrency), measured=measured, identity=identity or {}, source=source
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _inferencex(row: Object, source: str, gpus: int, given: int | None) -> list[Observation]:
    count = _dig(row, "num_gpus") or float(gpus)
    identity = {
        key: str(row[key])
        for key in ("model", "hw", "framework", "precision", "tp", "spec_decoding")
        if row.get(key) not in (None, "")
    }
    figures = {
        "total_tokens_per_s": _times(_dig(row, "tput_per_gpu"), count),
        "output_tokens_per_s": _times(_dig(row, "output_tput_per_gpu"), count),
        "ttft_mean_s": _dig(row, "mean_ttft"),
        "ttft_p50_s": _dig(row, "median_ttft"),
        "tpot_mean_s": _dig(row, "mean_tpot"),
        "tpot_p50_s": _dig(row, "median_tpot"),
        "hit_rate": _dig(row, "overall_cache_hit_rate"),
        "hit_rate_hbm": _dig(row, "gpu_cache_hit_rate"),
    }
    return [_observation(source, _dig(row, "conc") or given, figures, identity)]


def _aiperf(row: Object, source: str, gpus: int, given: int | None) -> list[Observation]:
    def seconds(name: str, statistic: str) -> float | None:
        unit = row.get(name, {}).get("unit", "ms") if isinstance(row.get(name), dict) else "ms"
        factor = {"ms": MS, "s": 1.0, "sec": 1.0, "us": 1e-6, "ns": 1e-9}.get(unit)
        if factor is None:
            raise IngestError(f"{name}: unknown unit {unit!r}.", file=source)
        return _times(_dig(row, name, statistic), factor)

    stated = _dig(row, "input_config", "loadgen", "concurrency")
    figures = {
        "requests_per_s": _dig(row, "request_throughput", "avg"),
        "output_tokens_per_s": _dig(row, "output_token_throughput", "avg"),
        "ttft_mean_s": seconds("time_to_first_token", "avg"),
        "ttft_p50_s": seconds("time_to_first_token", "p50"),
        "tpot_mean_s": seconds("inter_token_latency", "avg"),
        "tpot_p50_s": seconds("inter_token_latency", "p50"),
    }
    return [_observation(source, stated or given, figures)]


def _guidellm(row: Object, source: str, gpus: int, given: int | None) -> list[Observation]:
    points = []
    for run in row["benchmarks"]:
        metrics: Object = run.get("metrics", {})
        streams = next(
            (
                value
                for path in (
                    ("args", "strategy", "streams"),
                    ("config", "strategy", "streams"),
                    ("scheduler", "strategy", "streams"),
                )
                if (value := _dig(run, *path)) is not None
            ),
            None,
        )
        # Its "time per output token" is end-to-end time over tokens; the gap between tokens counts.
        figures = {
            "requests_per_s": _dig(metrics, "requests_per_second", "successful", "mean"),
            "output_tokens_per_s": _dig(metrics, "output_tokens_per_second", "successful", "mean"),
            "ttft_mean_s": _times(
                _dig(metrics, "time_to_first_token_ms", "successful", "mean"), MS
            ),
            "ttft_p50_s": _times(
                _dig(metrics, "time_to_first_token_ms", "successful", "median"), MS
            ),
            "tpot_mean_s": _times(
                _dig(metrics, "inter_token_latency_ms", "successful", "mean"), MS
            ),
        }
        points.append(_observation(source, streams or given, figures))
    return points


def _inference_perf(row: Object, source: str, gpus: int, given: int | None) -> list[Observation]:
    done: Object = row["successes"]
    figures = {
        "requests_per_s": _dig(done, "throughput", "requests_per_sec"),
        "output_tokens_per_s": _dig(done, "throughput", "output_tokens_per_sec"),
        "total_tokens_per_s": _dig(done, "throughput", "total_tokens_per_sec"),
        "ttft_mean_s": _dig(done, "latency", "time_to_first_token", "mean"),
        "ttft_p50_s": _dig(done, "latency", "time_to_first_token", "median"),
        "tpot_mean_s": _dig(done, "latency", "inter_token_latency", "mean"),
    }
    stated = _dig(row, "load_summary", "concurrency")
    return [_observation(source, stated or given, figures)]


Reader = Callable[[Object, str, int, int | None], Sequence[Observation]]
FORMATS: tuple[tuple[Callable[[Object], bool], Reader], ...] = (
    (lambda row: "tput_per_gpu" in row, _inferencex),
    (lambda row: isinstance(row.get("time_to_first_token"), dict), _aiperf),
    (lambda row: isinstance(row.get("benchmarks"), list), _guidellm),
    (lambda row: isinstance(row.get("successes"), dict) and "load_summary" in row, _inference_perf),
)
