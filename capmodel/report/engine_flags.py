"""Engine flags for a chosen plan, ready to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..results import Estimate


def engine_flags(answer: Estimate) -> dict[str, Any]:
    """Return the launch command and the two limits of a plan.

    The session cap belongs to the gateway: a running-request limit does not cap live sessions.
    """
    deployment = answer.run.scenario.deployment
    model = str(answer.run.scenario.model.name)
    dtype = "auto" if deployment.kv_dtype in ("auto", "bf16") else deployment.kv_dtype
    running = answer.running_limit
    if deployment.engine == "sglang":
        parts = [
            f"python -m sglang.launch_server --model-path {model}",
            f"--tp-size {deployment.tp}",
            f"--mem-fraction-static {deployment.gpu_memory_utilization:g}",
            f"--max-running-requests {running}",
        ]
        parts += [f"--pp-size {deployment.pp}"] if deployment.pp > 1 else []
        parts += ["--kv-cache-dtype fp8_e4m3"] if dtype == "fp8" else []
    elif deployment.engine == "trtllm":
        parts = [
            f"trtllm-serve {model}",
            f"--tp_size {deployment.tp}",
            f"--kv_cache_free_gpu_memory_fraction {deployment.gpu_memory_utilization:g}",
            f"--max_batch_size {running}",
        ]
        parts += [f"--pp_size {deployment.pp}"] if deployment.pp > 1 else []
    else:
        parts = [
            f"vllm serve {model}",
            f"--tensor-parallel-size {deployment.tp}",
            f"--gpu-memory-utilization {deployment.gpu_memory_utilization:g}",
            f"--max-num-seqs {running}",
            f"--kv-cache-dtype {dtype}",
            "--enable-prefix-caching"
            if deployment.prefix_caching
            else "--no-enable-prefix-caching",
        ]
        parts += [f"--pipeline-parallel-size {deployment.pp}"] if deployment.pp > 1 else []
        parts += [f"--decode-context-parallel-size {deployment.dcp}"] if deployment.dcp > 1 else []
        parts += ["--enable-expert-parallel"] if deployment.ep > 1 else []
        if deployment.max_model_len is not None:
            parts.append(f"--max-model-len {deployment.max_model_len}")
    return {
        "command": " ".join(parts),
        "gateway_session_cap": answer.session_cap,
        "engine_running_limit": running,
        "checked_against": "unverified",
        "alert_on": "prefix cache hit rate under 90% of its ceiling over 10 minutes",
    }
