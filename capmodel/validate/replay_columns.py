"""Replay points in the columns of the public collection → those of the shipped table.

Kept-back or newly published points are measured by the same code as those that ship.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import yaml

from .. import catalog
from ..errors import IngestError
from .agentic_points import Row

NAMES = Path(__file__).parent / "data" / "memory-names.yaml"
# Column here -> column there, where the text is taken as it is.
SAME = {
    "source": "source_url", "date": "date", "published_model": "model", "gpus": "num_gpus",
    "engine": "engine", "kv_tokens": "kv_budget_tokens", "concurrency": "concurrency",
    "output_tokens_per_s": "output_tput_tok_s", "total_tokens_per_s": "total_tput_tok_s",
    "total_tokens_per_s_per_gpu": "tput_per_gpu", "ttft_p50_s": "ttft_p50_s",
    "ttft_p90_s": "ttft_p90_s", "tpot_ms": "tpot_ms", "hit_rate_hbm": "hbm_hit_rate",
    "hit_rate_offload": "cpu_hit_rate", "hit_rate_overall": "overall_hit_rate",
    "hit_rate_theoretical": "theoretical_hit_rate", "tier_gb": "offload_gb",
    "speculation": "spec_decode",
}  # fmt: skip
RATES = ("output_tokens_per_s", "total_tokens_per_s", "total_tokens_per_s_per_gpu")
NO_TIER = ("none", "state tier only", "before state tier", "ssd")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table of replay points, in the columns of the shipped one.

    Raises
    ------
    IngestError
        If the file cannot be read or has neither kind of columns.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError) as error:
        raise IngestError(f"cannot be read: {error}", file=str(path)) from error
    columns = set(rows[0]) if rows else set()
    if "case_id" in columns:
        return list(rows)
    if not set(SAME.values()) <= columns:
        missing = ", ".join(sorted(set(SAME.values()) - columns))
        raise IngestError(f"lacks the columns {missing}.", file=str(path), line=1)
    return [converted(row, f"p{at:03d}") for at, row in enumerate(rows, start=1)]


def converted(row: Row, case_id: str) -> Row:
    """Return one row of the public collection in the columns of the shipped table."""
    layout = row["parallelism"]
    notes = row.get("notes", "")
    accepted = _first(r"\bAL (\d\.\d+)", row["spec_decode"]) or _first(r"\bAL (\d\.\d+)", notes)
    sequences = row["concurrency"] and _first(r"max-num-seqs (\d+)xconc", notes)
    kept = {here: row[there] for here, there in SAME.items()}
    elsewhere = _other_harness(notes)
    if elsewhere and kept["hit_rate_overall"]:
        # Hits can be compared without the gaps; rates cannot.
        elsewhere = ""
        kept |= dict.fromkeys(RATES, "")
    return {
        "case_id": case_id,
        **kept,
        "model": _model(row["model"]),
        "accelerator": _accelerator(row["hardware"]),
        "tp": _first(r"TP(\d+)", layout),
        "dp": _first(r"(?<!E)DP(\d+)", layout),
        "dcp": _first(r"DCP(\d+)", layout),
        "ep": _first(r"EP(\d+)", layout),
        "layout": _layout(layout),
        "weights": _first(r"^([A-Z]+\d+)", row["precision"]),
        "kv_dtype": _first(r"(fp8|bf16) KV", f"{row['precision']} {notes}"),
        "tier": _tier(row["offload"]),
        "gpu_memory_utilization": _first(r"(?:gmu|gpu-memory-utilization) (0?\.\d+)", notes),
        "accepted_tokens": accepted,
        "max_num_seqs": str(int(sequences) * int(row["concurrency"])) if sequences else "",
        "unusable": elsewhere,
    }


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match.group(1) if match else ""


def _model(text: str) -> str:
    table: dict[str, Any] = yaml.safe_load(NAMES.read_text(encoding="utf-8"))
    for entry in table["models"]:
        if re.search(entry["pattern"], text, re.IGNORECASE):
            return str(entry["model"] or "")
    return ""


def _accelerator(text: str) -> str:
    known = catalog.names("accelerators")
    return next((name for name in known if text.split(" ")[0] == name), text.split(" ")[0])


def _layout(text: str) -> str:
    pools = re.search(r"\d+P\d+D|disagg|prefill", text)
    return "disaggregated" if pools else "single"


def _tier(text: str) -> str:
    lowered = text.lower()
    if not lowered:
        return "unknown"
    bare = any(lowered.startswith(word) or word in lowered for word in NO_TIER)
    return "none" if bare else "dram"


def _other_harness(notes: str) -> str:
    if re.search(r"NOT AgentX", notes):
        return "not the replay harness: gaps and reuse of its sessions are not stated"
    if re.search(r"v0\.2/v0\.3 era", notes):
        return "replays an older corpus whose moments are not published"
    return ""
