"""The memory stage against logged engine starts: tokens, available memory, verdicts, parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from .. import catalog
from ..errors import CapmodelError
from ..memory.budget import KvBudget, kv_budget
from ..memory.drafts import draft_is_known
from ..memory.params import parameters
from ..memory.weights import checkpoint_bytes
from ..spec.node import Node
from ..units import GIB
from .memory_cases import DATA, MemoryCase, read_cases, shipped_cases

TOKENS_MISS_PCT = 1.0
AVAILABLE_MISS_PCT = 6.0
ANY_NODE = "H200"
TOKENS = "tokens, given GiB"
COMPRESSED = "the same, V4 attention"
AVAILABLE = "GiB, given the GPU"
VERDICTS = "does it start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One predicted figure beside its measured one; errors are in percent of `scale`."""

    id: str
    measured: float
    predicted: float
    scale: float
    inside_interval: bool
    reason: str = ""

    @property
    def error_pct(self) -> float:
        """Signed error [%]."""
        return 100.0 * (self.predicted - self.measured) / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "id": self.id,
            "measured": self.measured,
            "predicted": self.predicted,
            "error_pct": self.error_pct,
            "inside_interval": self.inside_interval,
            "reason": self.reason,
        }


@cache
def _remarks() -> dict[str, dict[str, str]]:
    text = (DATA / "memory-remarks.yaml").read_text(encoding="utf-8")
    table: dict[str, dict[str, str]] = yaml.safe_load(text)
    return table


def _remark(case_id: str, table: str) -> str:
    return _remarks().get(table, {}).get(case_id, "")


def _node(case: MemoryCase) -> Node:
    assert case.deployment is not None
    gpus = max(case.gpus, case.deployment.gpus)
    return catalog.node(f"{gpus}x{case.accelerator or ANY_NODE}")


def _why_not(case: MemoryCase) -> str:
    """Return why the case cannot be predicted from its own description, empty where it can."""
    if case.unusable or case.deployment is None or not case.model:
        return case.unusable or "no catalog model"
    if not draft_is_known(catalog.model(case.model), case.deployment):
        return "the drafter's cache is not on record for this model"
    return ""


def given_available(cases: Sequence[MemoryCase]) -> tuple[list[Comparison], dict[str, str]]:
    """Return tokens predicted from the logged available GiB, and the rows that cannot be used."""
    compared, unusable = [], {}
    for case in cases:
        if case.kv_tokens is None or not (case.available_gib and case.available_gib > 0):
            continue
        reason = _why_not(case) or _remark(case.id, "unusable_tokens")
        if reason:
            unusable[case.id] = reason
            continue
        assert case.deployment is not None
        given = replace(case.deployment, available_kv_gib=case.available_gib)
        budget = kv_budget(catalog.model(case.model), _node(case), given)
        if case.window_ratio is not None:
            budget = _with_window_ratio(case, budget)
        low, high = budget.intervals["kv_tokens"]
        compared.append(
            Comparison(
                id=case.id,
                measured=case.kv_tokens,
                predicted=float(budget.kv_tokens),
                scale=case.kv_tokens,
                inside_interval=low <= case.kv_tokens <= high,
                reason=_remark(case.id, "given_available"),
            )
        )
    return compared, unusable


def _with_window_ratio(case: MemoryCase, budget: KvBudget) -> KvBudget:
    """Return the budget for a window pool whose share of tokens the log states."""
    from ..memory.layouts import layer_classes
    from ..memory.pools import static_pools

    assert case.deployment is not None and case.available_gib is not None
    model = catalog.model(case.model)
    classes = layer_classes(model, model.layers, case.deployment)
    plan = static_pools(
        classes, block_tokens=1, dcp=1, step_tokens=1, window_ratio=case.window_ratio
    )
    half = 0.005 * GIB
    tokens = [plan.blocks(case.available_gib * GIB + edge) for edge in (-half, 0.0, half)]
    intervals = {**budget.intervals, "kv_tokens": (float(tokens[0]), float(tokens[2]))}
    return replace(budget, kv_tokens=tokens[1], intervals=intervals)


def given_gpu(cases: Sequence[MemoryCase]) -> tuple[list[Comparison], dict[str, str]]:
    """Return available GiB predicted from GPU, utilization and model, and the unusable rows.

    Notes
    -----
    Errors are in percent of utilization times HBM. Where a log has tokens and no GiB, the GiB
    are those that the layout needs for the tokens.
    """
    compared, unusable = [], {}
    for case in cases:
        if not case.utilization_known or (case.available_gib is None and case.kv_tokens is None):
            continue
        known = case.model and case.accelerator and case.deployment
        reason = "" if known and case.available_gib is not None else _why_not(case)
        reason = reason or _remark(case.id, "unusable_gpu")
        if reason or not case.accelerator:
            unusable[case.id] = reason or "no catalog accelerator"
            continue
        assert case.deployment is not None
        budget = kv_budget(catalog.model(case.model), _node(case), case.deployment)
        left = budget.available_kv_bytes_per_gpu or (
            budget.budget_bytes_per_gpu
            - budget.weights_bytes_per_gpu
            - budget.overhead_bytes_per_gpu
        )
        low, high = budget.intervals["available_kv_bytes_per_gpu"]
        measured = case.available_gib
        if measured is None:
            measured = _implied_gib(case)
        compared.append(
            Comparison(
                id=case.id,
                measured=measured,
                predicted=left / GIB,
                scale=budget.budget_bytes_per_gpu / GIB,
                inside_interval=low <= max(0.0, measured) * GIB <= high,
                reason=_remark(case.id, "given_gpu"),
            )
        )
    return compared, unusable


def _implied_gib(case: MemoryCase) -> float:
    """GiB per GPU that the layout needs for the logged tokens, from the ratio at 100 GiB."""
    assert case.deployment is not None and case.kv_tokens is not None
    at_hundred = replace(case.deployment, available_kv_gib=100.0)
    budget = kv_budget(catalog.model(case.model), _node(case), at_hundred)
    return 100.0 * case.kv_tokens / budget.kv_tokens


def verdicts(cases: Sequence[MemoryCase]) -> list[dict[str, Any]]:
    """Return predicted and stated verdicts of rows that say whether the engine started."""
    rows = []
    for case in cases:
        known = case.model and case.accelerator and case.deployment and case.utilization_known
        excluded = case.unusable or _remark(case.id, "unusable_gpu")
        if case.starts is None or not known or excluded:
            continue
        assert case.deployment is not None
        budget = kv_budget(catalog.model(case.model), _node(case), case.deployment)
        rows.append(
            {
                "id": case.id,
                "starts": case.starts,
                "fits": budget.fits,
                "right": budget.fits == case.starts,
                "certain": budget.fit_is_certain,
                "reason": _remark(case.id, "verdicts"),
            }
        )
    return rows


def k3_logs(cases: Sequence[MemoryCase]) -> list[dict[str, Any]]:
    """Return, for each logged pool of Kimi K3, the block counts that its tokens allow.

    Notes
    -----
    A log is reproduced when a whole number of blocks gives its tokens exactly (to the digits
    printed), and lies in the interval that the rounded GiB implies, where GiB were printed.
    """
    rows = []
    for case in cases:
        if case.model != "kimi-k3" or case.kv_tokens is None or case.deployment is None:
            continue
        given = replace(case.deployment, available_kv_gib=case.available_gib or 1.0)
        budget = kv_budget(catalog.model(case.model), _node(case), given)
        low, high = budget.intervals["kv_blocks"] if case.available_gib else (0.0, math.inf)
        digits = 1000 if case.kv_tokens % 1000 == 0 else 1
        longest, per_request = budget.max_model_len, budget.blocks_per_request
        near = round(case.kv_tokens * per_request / longest)
        fitting = [
            n
            for n in range(max(0, near - 2), near + 3)
            if abs(int(n / per_request * longest) - case.kv_tokens) < 0.5 * digits + 0.5
        ]
        inside = [n for n in fitting if low <= n <= high]
        rows.append(
            {"id": case.id, "tokens": case.kv_tokens, "blocks_per_request": per_request,
             "blocks": fitting, "reproduced": bool(inside)}
        )  # fmt: skip
    return rows


def published_params() -> list[dict[str, Any]]:
    """Return total parameters beside every exact published count, differences explained."""
    rows = []
    for name in catalog.names("models"):
        model = catalog.model(name)
        exact = model.published.get("total_params_exact_hf")
        if not isinstance(exact, int):
            continue
        counts = parameters(model)
        options = {"text": counts.total, "text with prediction modules": counts.total + counts.mtp}
        basis = min(options, key=lambda key: abs(options[key] - exact))
        difference = options[basis] - exact
        reason = _remark(name, "params") if difference else ""
        rows.append(
            {"id": name, "published": exact, "derived": options[basis], "basis": basis,
             "difference": difference, "reason": reason}
        )  # fmt: skip
    return rows


def k3_checkpoint_error() -> float:
    """Return the relative error of Kimi K3's checkpoint bytes, text part and vision tower [1]."""
    model = catalog.model("kimi-k3")
    published = model.published["checkpoint_bytes"]
    assert isinstance(published, int)
    return checkpoint_bytes(model) / published - 1


def _statistics(compared: Sequence[Comparison]) -> dict[str, Any]:
    if not compared:
        return {"n": 0, "median_abs_pct_error": None, "p90_abs_pct_error": None, "bias": None}
    errors = np.array([c.error_pct for c in compared])
    sizes = np.sort(np.abs(errors))
    return {
        "n": len(compared),
        "median_abs_pct_error": float(np.median(sizes)),
        "p90_abs_pct_error": float(sizes[math.ceil(0.9 * len(sizes)) - 1]),
        "p95_abs_pct_error": float(sizes[math.ceil(0.95 * len(sizes)) - 1]),
        "bias": float(np.median(errors)),
    }


def _table(
    compared: Sequence[Comparison], unusable: dict[str, str], miss_pct: float
) -> dict[str, Any]:
    missed = [c for c in compared if abs(c.error_pct) > miss_pct]
    inside = sum(c.inside_interval for c in compared)
    return {
        **_statistics(compared),
        "share_within_miss_limit": 1 - len(missed) / len(compared) if compared else None,
        "miss_limit_pct": miss_pct,
        "share_inside_interval": inside / len(compared) if compared else None,
        "misses": [c.to_dict() for c in missed],
        "unusable": [{"id": key, "reason": reason} for key, reason in unusable.items()],
    }


def run(file: Path | None = None) -> dict[str, Any]:
    """Return the error tables of the memory stage.

    Parameters
    ----------
    file : path, optional
        Another table in the same columns; None for the cases that come with the package.

    Returns
    -------
    dict
        The set's own statistics (tokens from given GiB), and under ``tables`` the same for the
        inferred layout of compressed attention, the available memory, verdicts, parameters.

    Raises
    ------
    CapmodelError
        If the table cannot be read.
    """
    try:
        cases = shipped_cases() if file is None else read_cases(file)
    except (OSError, KeyError) as error:
        raise CapmodelError(f"cannot read the table of starts: {error}") from error
    tokens, unusable = given_available(cases)
    inferred = [c for c in tokens if _has_inferred_layout(c.id, cases)]
    exact = [c for c in tokens if c not in inferred]
    available, unusable_gpu = given_gpu(cases)
    decided = verdicts(cases)
    main = _table(exact, unusable, TOKENS_MISS_PCT)
    tables = {
        TOKENS: main,
        COMPRESSED: _table(inferred, {}, TOKENS_MISS_PCT),
        AVAILABLE: _table(available, unusable_gpu, AVAILABLE_MISS_PCT),
    }
    wrong = [row for row in decided if not row["right"]]
    logs, counts = k3_logs(cases), published_params()
    return {
        "name": "memory",
        **main,
        "misses": [{**miss, "table": key} for key, t in tables.items() for miss in t["misses"]]
        + [_wrong_verdict(row) for row in wrong],
        "unusable": [{**row, "table": key} for key, t in tables.items() for row in t["unusable"]],
        "groups": {"question": [_group(key, table) for key, table in tables.items()]},
        "notes": _notes(decided, wrong, logs, counts),
        "tables": {
            "tokens_given_gib": main,
            "compressed_attention": tables[COMPRESSED],
            "available_given_gpu": tables[AVAILABLE],
            "verdicts": {"n": len(decided), "wrong": wrong},
            "k3_logs": logs,
            "params": counts,
            "k3_checkpoint_error": k3_checkpoint_error(),
        },
    }


def _group(key: str, table: dict[str, Any]) -> dict[str, Any]:
    names = ("n", "median_abs_pct_error", "p90_abs_pct_error")
    return {"group": key, **{name: table[name] for name in names}, "bias_pct": table["bias"]}


def _wrong_verdict(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "measured": float(row["starts"]),
        "predicted": float(row["fits"]),
        "reason": row["reason"],
        "table": VERDICTS,
    }


def _notes(
    decided: Sequence[dict[str, Any]],
    wrong: Sequence[dict[str, Any]],
    logs: Sequence[dict[str, Any]],
    counts: Sequence[dict[str, Any]],
) -> list[str]:
    certain = sum(row["certain"] for row in wrong)
    met = sum(row["difference"] == 0 for row in counts)
    return [
        f"starts and refusals: {len(decided) - len(wrong)} of {len(decided)} right, "
        f"{certain} of the wrong ones called certain",
        f"Kimi K3 logs reproduced: {sum(row['reproduced'] for row in logs)} of {len(logs)}",
        f"exact published parameter counts met: {met} of {len(counts)}, the rest explained",
        f"Kimi K3 checkpoint bytes: {100 * k3_checkpoint_error():+.3f}%",
    ]


def _has_inferred_layout(case_id: str, cases: Sequence[MemoryCase]) -> bool:
    """Whether the row's layout (DeepSeek-V4) is inferred from the same few logs."""
    case = next(c for c in cases if c.id == case_id)
    return case.model.startswith("deepseek-v4")
