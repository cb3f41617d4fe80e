"""Engine settings for a chosen plan: flags ready to paste, limits, and what a build can combine."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..catalog import raw_item
from ..memory.engine_defaults import is_before, version_number
from ..spec.deployment import Deployment
from ..units import GB

if TYPE_CHECKING:
    from ..results import Estimate

UNVERIFIED = "unverified"


@cache
def feature_matrix() -> dict[str, Any]:
    """Return what engine builds run together, with sources."""
    return dict(raw_item("builds", "feature-matrix"))


def engine_flags(answer: Estimate, session_cap: int | None = None) -> dict[str, Any]:
    """Return the launch command, the two limits, the metric to alert on and known conflicts.

    Parameters
    ----------
    answer : Estimate
        The operating point.
    session_cap : int, optional
        Live sessions of the plan; None for the estimate's own cap [1].

    Notes
    -----
    The session cap belongs to the gateway: a running-request limit does not cap live sessions,
    and sessions beyond the cap push each other out of the cache.
    """
    deployment = answer.run.scenario.deployment
    flags = flag_list(deployment, answer.running_limit)
    start = _START[deployment.engine].format(model=answer.run.scenario.model.name)
    ceiling = answer.hit_rate.theoretical
    return {
        "command": " ".join([start, *(f"{n} {v}".strip() for n, v in flags.items())]),
        "flags": {name: checked_against(deployment, name) for name in flags},
        "gateway_session_cap": answer.session_cap if session_cap is None else session_cap,
        "engine_running_limit": answer.running_limit,
        "checked_against": checked_against(deployment, *flags),
        "alert_on": f"prefix cache hit rate under {0.9 * ceiling:.0%} over 10 minutes",
        "conflicts": conflicts(deployment),
        "upgrades": upgrades(deployment),
    }


_START = {
    "vllm": "vllm serve {model}",
    "atom": "vllm serve {model}",
    "sglang": "python -m sglang.launch_server --model-path {model}",
    "trtllm": "trtllm-serve {model}",
}


def flag_list(deployment: Deployment, running: int) -> dict[str, str]:
    """Flags and values of a deployment in its engine's spelling, the running limit included."""
    return _WRITERS[deployment.engine](deployment, running)


def _vllm(d: Deployment, running: int) -> dict[str, str]:
    caching = "--enable-prefix-caching" if d.prefix_caching else "--no-enable-prefix-caching"
    flags = {
        "--tensor-parallel-size": str(d.tp),
        "--gpu-memory-utilization": f"{d.gpu_memory_utilization:g}",
        "--max-num-seqs": str(max(running // d.dp, 1)),
        "--kv-cache-dtype": "auto" if d.kv_dtype in ("auto", "bf16") else d.kv_dtype,
        caching: "",
    }
    for name, degree in (
        ("--pipeline-parallel-size", d.pp),
        ("--data-parallel-size", d.dp),
        ("--decode-context-parallel-size", d.dcp),
    ):
        if degree > 1:
            flags[name] = str(degree)
    if d.ep > 1:
        flags["--enable-expert-parallel"] = ""
    if d.max_model_len is not None:
        flags["--max-model-len"] = str(d.max_model_len)
    if d.max_num_batched_tokens is not None:
        flags["--max-num-batched-tokens"] = str(d.max_num_batched_tokens)
    if d.offload is not None and d.offload.tier == "dram":
        flags["--kv-offloading-size"] = f"{d.offload.bytes / 2**30:.0f}"
        flags["--kv-offloading-backend"] = "native"
    if d.speculation is not None:
        flags["--speculative-config"] = (
            f'\'{{"method": "{d.speculation.name}", '
            f'"num_speculative_tokens": {d.speculation.draft_tokens}}}\''
        )
    return flags


def _sglang(d: Deployment, running: int) -> dict[str, str]:
    flags = {
        "--tp-size": str(d.tp * d.dp),
        "--mem-fraction-static": f"{d.gpu_memory_utilization:g}",
        "--max-running-requests": str(running),
    }
    if d.pp > 1:
        flags["--pp-size"] = str(d.pp)
    if d.dp > 1:
        flags |= {"--dp-size": str(d.dp), "--enable-dp-attention": ""}
    if d.ep > 1:
        flags["--ep-size"] = str(d.ep)
    if d.kv_dtype == "fp8":
        flags["--kv-cache-dtype"] = "fp8_e4m3"
    if d.max_model_len is not None:
        flags["--context-length"] = str(d.max_model_len)
    if not d.prefix_caching:
        flags["--disable-radix-cache"] = ""
    if d.offload is not None and d.offload.tier == "dram":
        per_rank = d.offload.bytes / GB / d.gpus
        flags |= {"--enable-hierarchical-cache": "", "--hicache-size": f"{per_rank:.0f}"}
    if d.speculation is not None:
        flags["--speculative-num-steps"] = str(d.speculation.draft_tokens)
    return flags


def _trtllm(d: Deployment, running: int) -> dict[str, str]:
    flags = {
        "--tp_size": str(d.tp),
        "--kv_cache_free_gpu_memory_fraction": f"{d.gpu_memory_utilization:g}",
        "--max_batch_size": str(running),
    }
    if d.pp > 1:
        flags["--pp_size"] = str(d.pp)
    if d.ep > 1:
        flags["--ep_size"] = str(d.ep)
    if d.max_model_len is not None:
        flags["--max_seq_len"] = str(d.max_model_len)
    if d.max_num_batched_tokens is not None:
        flags["--max_num_tokens"] = str(d.max_num_batched_tokens)
    return flags


_WRITERS = {"vllm": _vllm, "atom": _vllm, "sglang": _sglang, "trtllm": _trtllm}


def checked_against(deployment: Deployment, *flags: str) -> str:
    """Build whose sources show all these flags, or ``unverified``."""
    version = deployment.engine_version or "day-0"
    for row in feature_matrix()["checked_flags"]:
        same = row["engine"] == deployment.engine and row["version"] == version
        if same and all(flag in row["flags"] for flag in flags):
            return f"{row['engine']} {row['version']}"
    return UNVERIFIED


def features_used(deployment: Deployment) -> set[str]:
    """Features of the matrix that a deployment combines."""
    used = {name for name in ("pp", "dcp") if getattr(deployment, name) > 1}
    if deployment.speculation is not None:
        used.add("speculation")
    if deployment.offload is not None:
        used.add("offload")
    return used


def conflicts(deployment: Deployment) -> list[dict[str, Any]]:
    """Rows of the matrix that refuse what the deployment combines."""
    used = features_used(deployment)
    return [
        dict(row)
        for row in feature_matrix()["combinations"]
        if row["engine"] == deployment.engine
        and row["status"] == "refused"
        and set(row["features"]) <= used
        and _applies(row, deployment.engine_version)
    ]


def upgrades(deployment: Deployment) -> list[dict[str, Any]]:
    """Combinations that a later build runs and the deployment does not use, those with a gain."""
    used = features_used(deployment)
    return [
        {name: row[name] for name in ("features", "since", "gain", "source")}
        for row in feature_matrix()["combinations"]
        if row["engine"] == deployment.engine
        and row["status"] == "runs"
        and row["gain"]
        and not set(row["features"]) <= used
    ]


def _applies(row: dict[str, Any], version: str) -> bool:
    if "only" in row:
        return version_number(version) == version_number(row["only"])
    if row.get("before") in (None, "unknown"):
        return True
    return version in ("", "day-0") or is_before(version, row["before"])
