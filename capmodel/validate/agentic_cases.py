"""Rows of agentic replay points → scenarios, with every assumption named, or the reason why not."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .. import catalog
from ..errors import CapmodelError
from ..memory.budget import kv_budget
from ..scenario import ResolvedScenario, Scenario
from ..spec.deployment import Offload, Speculation
from ..spec.node import Node
from ..units import GB, GIB
from .agentic_points import Row, agentic_points
from .corpus import without_long_prompts
from .measured_point import MeasuredPoint

DATA = Path(__file__).parent / "data"
MIB = 2**20
_SITE = ("source", "model", "accelerator", "gpus", "engine")
# What a source states in one row and leaves out in others of the same configuration.
SHARED_BY_A_SOURCE = {
    "kv_dtype": _SITE,
    "gpu_memory_utilization": _SITE,
    "kv_tokens": (*_SITE, "kv_dtype", "speculation", "dcp"),
    "accepted_tokens": _SITE,
}


@cache
def assumptions() -> Mapping[str, Any]:
    """Return what is assumed where the sources say nothing."""
    text = (DATA / "agentic-assumptions.yaml").read_text(encoding="utf-8")
    table: Mapping[str, Any] = yaml.safe_load(text)
    return table


@cache
def shipped_points() -> tuple[MeasuredPoint, ...]:
    """Return the measured points that come with the package, usable or not, in file order."""
    return measured_points(agentic_points())


@cache
def shipped_hit_rates() -> tuple[MeasuredPoint, ...]:
    """Return the measured hit rates that come with the package, usable or not, in file order."""
    with (DATA / "hit_rate_points.csv").open(encoding="utf-8", newline="") as stream:
        return measured_points(tuple(csv.DictReader(stream)))


def measured_points(rows: Sequence[Row]) -> tuple[MeasuredPoint, ...]:
    """Return rows in the columns of the shipped table as measured points."""
    return tuple(_point(*_completed(row, rows)) for row in rows)


def _completed(row: Row, rows: Sequence[Row]) -> tuple[Row, list[str]]:
    """Return the row with what its source states once for all rows of the configuration."""
    filled, named = dict(row), []
    for column, same in SHARED_BY_A_SOURCE.items():
        if filled[column] or any(not filled[key] for key in ("model", "engine")):
            continue
        if column == "accepted_tokens" and filled["speculation"] in ("", "none"):
            continue
        stated = {other[column] for other in rows if all(other[k] == filled[k] for k in same)}
        stated.discard("")
        if len(stated) == 1:
            filled[column] = stated.pop()
            named.append(f"{column} {filled[column]}: as in the source's other rows")
    return filled, named


def _point(row: Row, named: list[str]) -> MeasuredPoint:
    bare = MeasuredPoint(
        id=row["case_id"],
        source=row["source"],
        date=row["date"],
        model=row["model"],
        accelerator=row["accelerator"],
        engine=_engine(row["engine"]),
    )
    reason = row.get("unusable", "") or _matching(row, "unusable") or _incomplete(row)
    if reason:
        return replace(bare, unusable=reason)
    try:
        scenario = _scenario(row, named)
    except CapmodelError as error:
        return replace(bare, unusable=str(error))
    per_gpu = _number(row["total_tokens_per_s_per_gpu"])
    total = _number(row["total_tokens_per_s"]) or (
        per_gpu * scenario.node.total_gpus if per_gpu else None
    )
    output = _number(row["output_tokens_per_s"])
    hits_only = _matching(row, "hits_only")
    if hits_only:
        output = total = None
        named.append(hits_only)
    return replace(
        bare,
        scenario=scenario,
        concurrency=int(row["concurrency"]),
        accepted_tokens=_number(row.get("accepted_tokens", "")),
        output_tokens_per_s=output,
        total_tokens_per_s=total,
        hit_rate_hbm=_number(row["hit_rate_hbm"]),
        hit_rate=_overall(row),
        theoretical_hit_rate=_number(row["hit_rate_theoretical"]),
        tier_is_stated=row["tier"] != "unknown",
        assumptions=tuple(named),
    )


def _engine(text: str) -> str:
    lowered = text.lower()
    return next((name for name in ("vllm", "sglang", "atom") if lowered.startswith(name)), "")


def _number(text: str) -> float | None:
    return float(text) if text else None


def _matching(row: Row, table: str) -> str:
    """Reason of the first rule of a table that the row meets, empty for none."""
    for rule in assumptions()[table]:
        if "id" in rule and row["case_id"] != rule["id"]:
            continue
        if "source" in rule and rule["source"] not in row["source"]:
            continue
        if "column" in rule and row[rule["column"]] != rule["value"]:
            continue
        if "engine" in rule and row["engine"] != rule["engine"]:
            continue
        return str(rule["reason"])
    return ""


def _incomplete(row: Row) -> str:
    if not row["gpus"]:
        return "the number of accelerators is not stated"
    rates = row["output_tokens_per_s"] or row["total_tokens_per_s_per_gpu"]
    hits = row["hit_rate_hbm"] or row["hit_rate_overall"]
    return "" if rates or hits else "neither a rate nor a hit rate of the whole run is stated"


def _overall(row: Row) -> float | None:
    overall, hbm = _number(row["hit_rate_overall"]), _number(row["hit_rate_hbm"])
    if overall is not None:
        return overall
    tier = _number(row["hit_rate_offload"])
    if row["tier"] == "none":
        return hbm
    return hbm + tier if hbm is not None and tier is not None else None


def _scenario(row: Row, named: list[str]) -> ResolvedScenario:
    node = _node(row)
    engine = _engine(row["engine"])
    if not row["kv_dtype"]:
        named.append("KV format: the recipe's or the engine's default")
    if not row["gpu_memory_utilization"] and not row["kv_tokens"]:
        named.append("utilization 0.90")
    limit = _number(row.get("max_num_seqs", "")) or _limit(row, engine, named)
    speculation = _speculation(row, named)
    given = Scenario(
        model=row["model"],
        node=node,
        tp=int(row["tp"] or node.total_gpus),
        dp=int(row["dp"] or 1),
        dcp=int(row["dcp"] or 1),
        ep=int(row["ep"] or 1),
        engine=engine,
        engine_version=_version(row, speculation, named),
        weights=_weights(row),
        kv_dtype=row["kv_dtype"] or "auto",
        gpu_memory_utilization=float(row["gpu_memory_utilization"] or 0.90),
        max_num_seqs=None if limit is None else int(limit),
        prefix_caching="cache off" not in row["engine"],
        speculate=speculation,
    ).resolve()
    short = assumptions()["short_corpus_tokens"]
    if given.model.max_position_tokens <= short:
        named.append(f"corpus: prompts up to {short} tokens, lognormal")
        given = replace(given, workload=without_long_prompts(given.workload, short))
    given = _with_pool(given, _number(row["kv_tokens"]), named)
    return _with_tier(row, given, named)


def _node(row: Row) -> Node:
    part = catalog.accelerator(row["accelerator"])
    gpus = int(row["gpus"])
    per_node = min(gpus, part.gpus_per_node)
    if part.scale_up_domain > part.gpus_per_node:
        # A rack is one scale-up domain: collectives do not leave it.
        return Node(accelerator=part, gpus=gpus)
    return Node(accelerator=part, gpus=per_node, nodes=max(1, gpus // per_node))


def _weights(row: Row) -> str:
    table = assumptions()["models"].get(row["model"], {}).get("weights", "auto")
    if isinstance(table, str):
        return table
    found = table.get(row["weights"], "auto")
    return str(found if isinstance(found, str) else found.get(row["accelerator"], "auto"))


def _version(row: Row, speculation: Speculation | None, named: list[str]) -> str:
    match = re.search(r"v?(\d+\.\d+(?:\.\d+)?)", row["engine"])
    if match:
        return match.group(1)
    if speculation is not None and row["dcp"] not in ("", "1"):
        named.append("a build that runs the draft in this layout")
        return "0.29"
    named.append("build: the catalog's reference build")
    return ""


def _limit(row: Row, engine: str, named: list[str]) -> float | None:
    for rule in assumptions()["limits"]:
        if (rule["model"], rule["accelerator"], rule["engine"]) == (
            row["model"], row["accelerator"], engine,
        ):  # fmt: skip
            named.append(f"running limit {rule['max_num_seqs']} ({rule['source']})")
            return float(rule["max_num_seqs"])
    named.append("running limit: the engine's default")
    return None


def _speculation(row: Row, named: list[str]) -> Speculation | None:
    text = row["speculation"]
    if text == "":
        named.append("no speculation")
    for rule in assumptions()["drafts"]:
        match = re.search(rule["pattern"], text)
        if match is None:
            continue
        depth = int(match.group(1) or rule.get("depth", 1))
        if not match.group(1):
            named.append(f"draft depth {depth}")
        acceptance = "real" if "real" in text else "golden"
        if not row.get("accepted_tokens"):
            named.append(f"{acceptance} acceptance of the draft at its depth")
        return Speculation(name=rule["name"], draft_tokens=depth, acceptance=acceptance)
    return None


def _with_pool(
    given: ResolvedScenario, kv_tokens: float | None, named: list[str]
) -> ResolvedScenario:
    """Return the scenario with the pool that the log states, where it states one."""
    if kv_tokens is None:
        return given
    budget = kv_budget(given.model, given.node, given.deployment)
    if budget.kv_tokens <= 0:
        return given
    gib = budget.available_kv_bytes_per_gpu / GIB * kv_tokens / budget.kv_tokens
    named.append(f"pool as logged, {kv_tokens:.0f} tokens (the model says {budget.kv_tokens})")
    return replace(given, deployment=replace(given.deployment, available_kv_gib=gib))


def _with_tier(row: Row, given: ResolvedScenario, named: list[str]) -> ResolvedScenario:
    if row["tier"] == "unknown":
        named.append("no tier: the source names none")
    if row["tier"] != "dram":
        return given
    size = _number(row["tier_gb"])
    held = size * GB if size else _tier_bytes(row, given, named)
    per_node = held / given.node.nodes
    tier = Offload(tier="dram", bytes=per_node)
    return replace(given, deployment=replace(given.deployment, offload=tier))


def _tier_bytes(row: Row, given: ResolvedScenario, named: list[str]) -> float:
    rules, engine = assumptions()["tier_rule"], _engine(row["engine"])
    wanted = {"model": row["model"], "accelerator": row["accelerator"], "engine": engine}

    def stated(table: str) -> Mapping[str, Any] | None:
        return next((r for r in rules[table] if all(r[k] == v for k, v in wanted.items())), None)

    by_rank = stated("per_rank_gb")
    if by_rank is not None:
        named.append(f"tier of {by_rank['value']} GB per rank ({by_rank['source']})")
        return float(by_rank["value"]) * GB * given.node.total_gpus
    if engine == "sglang":
        ratio = rules["sglang_ratio"]
        budget = kv_budget(given.model, given.node, given.deployment)
        named.append(f"tier of {ratio['value']} times the pool ({ratio['source']})")
        pool = budget.available_kv_bytes_per_gpu * given.node.total_gpus
        return float(ratio["value"]) * pool
    rule = stated("utilization") or rules["otherwise"]
    named.append(f"tier by the utilization rule at {rule['value']} ({rule['source']})")
    node = given.node
    memory = min(node.host_dram_bytes * node.nodes, rules["cap_mib"] * MIB * node.nodes)
    return float(memory * rule["value"])
