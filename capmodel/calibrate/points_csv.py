"""Measured points in a CSV: one row per load point, units in the column names."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from ..errors import IngestError, nearest_names
from .observation import QUANTITIES, Observation

CONCURRENCY = ("concurrency", "conc", "c", "sessions", "max_concurrency", "users")
IDENTITY = (
    "model", "hardware", "hw", "gpu", "accelerator", "node", "engine", "framework", "precision",
    "parallelism", "tp", "pp", "dp", "ep", "dcp", "spec_decode", "speculation", "offload", "tier",
    "offload_gb", "workload", "dataset",
)  # fmt: skip
# What others call a quantity; a per-GPU name ends in `_per_gpu` after this.
ALIASES = {
    "output_tput_tok_s": "output_tokens_per_s",
    "output_tok_s": "output_tokens_per_s",
    "output_throughput": "output_tokens_per_s",
    "output_tput": "output_tokens_per_s",
    "total_tput_tok_s": "total_tokens_per_s",
    "total_tok_s": "total_tokens_per_s",
    "total_token_throughput": "total_tokens_per_s",
    "tput": "total_tokens_per_s",
    "request_throughput": "requests_per_s",
    "requests_per_second": "requests_per_s",
    "ttft_s": "ttft_mean_s",
    "mean_ttft_s": "ttft_mean_s",
    "median_ttft_s": "ttft_p50_s",
    "p90_ttft_s": "ttft_p90_s",
    "tpot_s": "tpot_mean_s",
    "itl_s": "tpot_mean_s",
    "mean_tpot_s": "tpot_mean_s",
    "mean_itl_s": "tpot_mean_s",
    "median_tpot_s": "tpot_p50_s",
    "p90_tpot_s": "tpot_p90_s",
    "overall_hit_rate": "hit_rate",
    "hit_rate_overall": "hit_rate",
    "hbm_hit_rate": "hit_rate_hbm",
}
# Suffix of a column in another unit -> (suffix of the quantity, factor).
OTHER_UNITS = {"_ms": ("_s", 1e-3), "_pct": ("", 1e-2), "_percent": ("", 1e-2)}
PER_GPU = "_per_gpu"


def quantity_of(column: str, gpus: int) -> tuple[str, float] | None:
    """Return the quantity that a column holds and the factor to its unit, None for another."""
    name = column.strip().lower()
    factor = 1.0
    if name.endswith(PER_GPU):
        name, factor = name[: -len(PER_GPU)], float(gpus)
    for suffix, (replacement, scale) in OTHER_UNITS.items():
        other = name[: -len(suffix)] + replacement
        if name.endswith(suffix) and ALIASES.get(other, other) in QUANTITIES:
            name, factor = other, factor * scale
    name = ALIASES.get(name, name)
    return (name, factor) if name in QUANTITIES else None


def read_points_csv(path: Path, gpus: int) -> list[Observation]:
    """Return the load points of a CSV file.

    Parameters
    ----------
    path : Path
        File with a header; a concurrency column, quantities by name (``ttft_p50_ms`` and
        ``hit_rate_pct`` are converted), and columns that say what was run.
    gpus : int
        Accelerators, for columns per accelerator [1].

    Raises
    ------
    IngestError
        With file and line, where a column is missing or a figure is not a number.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            table = csv.DictReader(stream)
            columns = [name for name in (table.fieldnames or []) if name]
            held = {name: quantity_of(name, gpus) for name in columns}
            lowered = {name.strip().lower(): name for name in columns}
            at = next((lowered[name] for name in CONCURRENCY if name in lowered), None)
            if at is None:
                raise IngestError("a column 'concurrency' is needed.", file=str(path), line=1)
            if not any(held.values()):
                close = nearest_names(", ".join(columns), QUANTITIES)
                raise IngestError(
                    f"no column is a known quantity ({', '.join(QUANTITIES)}); "
                    f"nearest: {', '.join(close) or 'none'}.",
                    file=str(path),
                    line=1,
                )
            points = [_point(row, held, at, path, line) for line, row in enumerate(table, start=2)]
    except (OSError, UnicodeDecodeError) as error:
        raise IngestError(f"cannot be read: {error}", file=str(path)) from error
    if not points:
        raise IngestError("holds no points.", file=str(path), line=1)
    return points


def _point(
    row: Mapping[str, str],
    held: Mapping[str, tuple[str, float] | None],
    at: str,
    path: Path,
    line: int,
) -> Observation:
    measured = {}
    for column, known in held.items():
        text = (row.get(column) or "").strip()
        if known is None or not text:
            continue
        measured[known[0]] = known[1] * _number(text, column, path, line)
    concurrency = _number(row.get(at) or "", at, path, line)
    if concurrency != int(concurrency) or concurrency < 1:
        raise IngestError(
            f"{at} = {concurrency:g} is not a whole number >= 1.", file=str(path), line=line
        )
    identity = {
        name.strip().lower(): (row.get(name) or "").strip()
        for name in held
        if name.strip().lower() in IDENTITY and (row.get(name) or "").strip()
    }
    return Observation(
        concurrency=int(concurrency),
        measured=measured,
        identity=identity,
        source=f"{path}:{line}",
    )


def _number(text: str, column: str, path: Path, line: int) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise IngestError(
            f"{column} = {text!r} is not a number.", file=str(path), line=line
        ) from error
