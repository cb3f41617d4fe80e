"""The measured case closest to a scenario, and what the model says there."""

from __future__ import annotations

import math

from ..results import NearestCase
from ..scenario import ResolvedScenario
from ..solver import Solver
from .agentic_points import Row, agentic_points


def nearest_case(
    solver: Solver, concurrency: int, *, exact_only: bool = False
) -> NearestCase | None:
    """Return the closest measured point of the same model, node, engine and tier, or None.

    Parameters
    ----------
    solver : Solver
        The scenario, and what predicts it.
    concurrency : int
        Live sessions [1].
    exact_only : bool
        Take only a point at this very concurrency.
    """
    resolved = solver.resolved
    alike = [row for row in agentic_points() if _comparable(row, resolved)]
    if exact_only:
        alike = [row for row in alike if int(row["concurrency"]) == concurrency]
    if not alike:
        return None
    row = min(alike, key=lambda r: abs(math.log(int(r["concurrency"]) / concurrency)))
    at = int(row["concurrency"])
    solved = solver(at)
    if row["output_tokens_per_s"]:
        metric, measured = "output_tokens_per_s", float(row["output_tokens_per_s"])
        predicted = solved.output_tokens_per_s
    else:
        metric, measured = "total_tokens_per_s_per_gpu", float(row["total_tokens_per_s_per_gpu"])
        workload = resolved.workload
        tokens = workload.request_tokens_mean + workload.output_tokens_mean
        predicted = solved.requests_per_s * tokens / resolved.node.total_gpus
    tier = "no offload" if row["tier"] == "none" else f"DRAM {row['tier_gb'] or '?'} GB"
    return NearestCase(
        source=row["source"],
        description=f"{row['gpus']}x{row['accelerator']}, {row['engine']}, C={at}, {tier}",
        metric=metric,
        measured=measured,
        predicted=predicted,
    )


def _comparable(row: Row, resolved: ResolvedScenario) -> bool:
    deployment, node = resolved.deployment, resolved.node
    if row["model"] != resolved.model.name or row["published_model"].lower() != row["model"]:
        return False
    if row["accelerator"] != node.accelerator.name or row["gpus"] != str(node.total_gpus):
        return False
    if not row["concurrency"] or row["speculation"] not in ("", "none"):
        return False
    if not (row["output_tokens_per_s"] or row["total_tokens_per_s_per_gpu"]):
        return False
    if row["layout"] != "single" or row["dcp"] not in ("", str(deployment.dcp)):
        return False
    if deployment.speculation is not None or resolved.workload.name != "agentic-coding":
        return False
    if not row["engine"].lower().startswith(deployment.engine):
        return False
    wanted = "none" if deployment.offload is None else "dram"
    return row["tier"] == wanted and row["kv_dtype"] in ("", deployment.kv_dtype)
