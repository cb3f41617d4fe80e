"""A sweep as CSV: one row per concurrency, units in the column names."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..results import Sweep

# Column -> dotted key of the JSON object; money columns follow the order of FinOps exports.
COLUMNS = {
    "model": "model",
    "node": "node",
    "nodes": "nodes",
    "engine": "engine",
    "workload": "workload",
    "concurrency_sessions": "concurrency",
    "regime": "regime",
    "hit_rate_hbm_ratio": "hit_rate.hbm",
    "hit_rate_offload_ratio": "hit_rate.offload",
    "hit_rate_overall_ratio": "hit_rate.overall",
    "requests_per_s": "throughput.requests_per_s",
    "input_tokens_per_s": "throughput.input_tokens_per_s",
    "output_tokens_per_s": "throughput.output_tokens_per_s",
    "ttft_p50_s": "ttft_s.p50",
    "ttft_p90_s": "ttft_s.p90",
    "tpot_p50_s": "tpot_s.p50",
    "utilization_ratio": "utilization",
    "price_basis": "cost.price_basis",
    "billed_cost_usd_per_hour": "cost.usd_per_hour",
    "effective_cost_usd_per_mtok": "cost.usd_per_mtok_total",
    "effective_cost_usd_per_mtok_output": "cost.usd_per_mtok_output",
    "effective_cost_usd_per_turn": "cost.usd_per_turn",
    "effective_cost_usd_per_session": "cost.usd_per_session",
    "margin_ratio": "cost.margin",
}


def sweep_csv(sweep: Sweep) -> str:
    """Return the rows of a sweep as CSV text; what is absent stays empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in sweep.rows:
        body = {**row.to_dict(), "regime": row.regime}
        writer.writerow([_entry(body, key) for key in COLUMNS.values()])
    return buffer.getvalue()


def _entry(body: Any, key: str) -> Any:
    for part in key.split("."):
        body = body.get(part) if isinstance(body, dict) else None
    return "" if body is None else body
