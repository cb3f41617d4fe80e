"""Logged engine starts → cases the memory stage can be asked about, or a reason why not."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import CapmodelError
from ..spec.deployment import Deployment, Speculation

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCase:
    """One logged start of an engine.

    Parameters
    ----------
    id, source : str
        Row and where it was logged.
    model, accelerator : str
        Catalog names, empty where unknown.
    gpus : int
        Accelerators [1].
    deployment : Deployment, optional
        What was asked for, without the available figure; None where it cannot be expressed.
    available_gib, kv_tokens, max_concurrency, weights_gib : float, optional
        What was logged [GiB], [tokens], [1], [GiB].
    utilization_known : bool
        Whether the share of memory was stated.
    starts : bool, optional
        Whether the engine started, where the row says.
    window_ratio : float, optional
        Tokens of a separate window pool over those of the full pool, where logged [1].
    unusable : str
        Why no prediction can be made of the tokens, empty where it can.
    """

    id: str
    source: str
    model: str = ""
    accelerator: str = ""
    gpus: int = 1
    deployment: Deployment | None = None
    available_gib: float | None = None
    kv_tokens: float | None = None
    max_concurrency: float | None = None
    weights_gib: float | None = None
    utilization_known: bool = False
    starts: bool | None = None
    window_ratio: float | None = None
    unusable: str = ""


@cache
def _names() -> dict[str, Any]:
    text = (DATA / "memory-names.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    return table


def shipped_cases() -> list[MemoryCase]:
    """Return the cases that come with the package."""
    return read_cases(DATA / "memory_cases.csv")


def read_cases(file: Path) -> list[MemoryCase]:
    """Return the cases of a table in the columns of the reference's start log."""
    with file.open(encoding="utf-8", newline="") as stream:
        return [case_from_row(row) for row in csv.DictReader(stream)]


def case_from_row(row: Mapping[str, str]) -> MemoryCase:
    """Return the case that one row of logged figures describes.

    Notes
    -----
    Draft tokens, context parallelism and limits stand in the row's notes in words such as
    ``MTP 2 draft tokens`` or ``decode-context-parallel 2``.
    """
    notes = row.get("notes", "") or ""
    model, reason = _model_name(row.get("model", ""))
    accelerator = _accelerator_name(row.get("gpu", ""))
    deployment: Deployment | None = None
    try:
        deployment = _deployment(row, notes)
    except (CapmodelError, ValueError) as error:
        reason = reason or str(error)
    reason = reason or _special_cache(row.get("kv_cache_dtype", ""), notes)
    return MemoryCase(
        id=row["id"],
        source=row.get("source_url", ""),
        model=model,
        accelerator=accelerator,
        gpus=int(_number(row.get("num_gpus")) or 1),
        deployment=deployment,
        available_gib=_number(row.get("available_kv_gib_per_gpu")),
        kv_tokens=_number(row.get("kv_tokens")),
        max_concurrency=_number(row.get("max_concurrency_reported")),
        weights_gib=_number(row.get("model_weights_gib_per_gpu")),
        utilization_known=_utilization(row) is not None,
        starts=_verdict(row, notes),
        window_ratio=_window_ratio(notes),
        unusable=reason,
    )


def _model_name(text: str) -> tuple[str, str]:
    for entry in _names()["models"]:
        if re.search(entry["pattern"], text, re.IGNORECASE):
            return (entry["model"], "") if entry["model"] else ("", f"{text}: {entry['reason']}")
    return "", f"{text}: no catalog model"


def _accelerator_name(text: str) -> str:
    for entry in _names()["accelerators"]:
        if re.search(entry["pattern"], text):
            return str(entry["name"])
    return ""


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text not in (None, "", "yes") else None
    except ValueError:
        return None


def _utilization(row: Mapping[str, str]) -> float | None:
    match = re.match(r"\s*(0?\.\d+|1\.0*)", row.get("gpu_memory_utilization", "") or "")
    return float(match.group(1)) if match else None


def _first_int(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text, re.IGNORECASE)
    return int(match.group(1).replace(",", "")) if match else None


def _deployment(row: Mapping[str, str], notes: str) -> Deployment:
    longest, batched = _number(row.get("max_model_len")), _number(row.get("max_num_batched_tokens"))
    tp = int(_number(row.get("tp")) or 1)
    dcp = _first_int(r"(?:decode-context-parallel|DCP)[ =]*(\d+)", notes) or 1
    return Deployment(
        engine=_engine(row.get("engine", "")),
        engine_version=_version(row),
        tp=tp,
        pp=int(_number(row.get("pp")) or 1),
        dp=int(_number(row.get("dp")) or 1),
        dcp=dcp,
        weights=_weights(row.get("weight_dtype_or_quant", ""), row.get("model", "")),
        kv_dtype="fp8" if re.search(r"fp8|1 byte", row.get("kv_cache_dtype", "")) else "bf16",
        gpu_memory_utilization=_utilization(row) or 0.9,
        max_model_len=int(longest) if longest else None,
        max_num_seqs=_first_int(r"max_num_seqs (\d+)", notes),
        max_num_batched_tokens=int(batched) if batched else None,
        speculation=_speculation(notes, row.get("model", "")),
    )


def _version(row: Mapping[str, str]) -> str:
    stated = (row.get("engine_version") or "").strip()
    if stated or (row.get("engine") or "") not in ("vLLM", "Aphrodite"):
        return stated
    date = row.get("date") or "9999"
    return next((str(r["version"]) for r in _names()["releases"] if date <= r["until"]), "")


def _engine(text: str) -> str:
    lowered = text.lower()
    for engine in ("sglang", "tensorrt", "atom", "vllm"):
        if engine in lowered:
            return {"tensorrt": "trtllm"}.get(engine, engine)
    if "aphrodite" in lowered:
        return "vllm"
    raise ValueError(f"engine {text!r} has no model here")


def _weights(text: str, model: str) -> str:
    lowered = f"{text} {model}".lower()
    own = ("Kimi-K2", "Kimi-K3", "V4-Flash", "gpt-oss", "MiniMax-M2", "DeepSeek-R1")
    mixed = any(word in lowered for word in ("awq", "nvfp4", "autoround"))
    if any(name in model for name in own) and not mixed:
        return "auto"
    for word, name in (
        ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("awq", "int4"), ("int4", "int4"),
        ("w4", "int4"), ("int8", "fp8"), ("fp8", "fp8"), ("compressed-tensors", "int4"),
    ):  # fmt: skip
        if word in lowered:
            return name
    return "bf16"


def _speculation(notes: str, model: str) -> Speculation | None:
    if "DFlash" in model:
        return Speculation(name="dflash", draft_tokens=15)
    match = re.search(r"MTP (\d+)", notes)
    if match:
        count = int(match.group(1))
        return Speculation(name="mtp", draft_tokens=count) if count else None
    count_text = _first_int(r"DSpark[a-z ]*(?:k=)?(\d+)", notes)
    if count_text:
        return Speculation(name="dspark", draft_tokens=count_text)
    if re.search(r"MTP (speculative layer|draft)", notes):
        return Speculation(name="mtp", draft_tokens=3)
    return None


def _special_cache(kv_dtype: str, notes: str) -> str:
    if "fp4" in kv_dtype:
        return f"KV format {kv_dtype} has no layout here"
    if "allocator estimate" in notes:
        return "an estimate of an allocator, not a start"
    return ""


def _window_ratio(notes: str) -> float | None:
    full = _first_int(r"full-attention pool (\d+)", notes)
    window = _first_int(r"sliding-window pool (\d+)", notes)
    return window / full if full and window else None


def _verdict(row: Mapping[str, str], notes: str) -> bool | None:
    if "start refused" in notes or "start failed" in notes:
        return False
    if row.get("kv_tokens") and row.get("max_concurrency_reported"):
        return True
    return None
