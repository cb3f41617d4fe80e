"""What an engine does where the user says nothing: batch limits, block lengths, log format."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ..catalog import raw_item
from ..spec.accelerator import Accelerator
from ..spec.attention import CompressedAttention, LatentAttention
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..units import parse_bytes


@cache
def _table() -> dict[str, Any]:
    return raw_item("builds", "engine-defaults")


Version = tuple[int, int, int]


def version_number(text: str) -> Version | None:
    """Return the release a build has the features of, or None where the text has no version.

    Notes
    -----
    A development or candidate build precedes the release it is named after. ``0.1.devN`` is what
    a source build without tags calls itself; N counts commits.
    """
    source_build = re.match(r"\s*0\.1\.dev(\d+)", text)
    if source_build:
        rule = _table()["source_build"]
        commits = int(source_build.group(1))
        counted = rule["uncounted_below"] <= commits < rule["commits_below"]
        return version_number(rule["version"]) if counted else None
    match = re.match(r"\s*v?(\d+)\.(\d+)(?:\.(\d+)(\.dev|rc)?)?", text)
    if match is None:
        return None
    patch = int(match.group(3) or 0) - (1 if match.group(4) else 0)
    return int(match.group(1)), int(match.group(2)), patch


def is_before(version: str, limit: str) -> bool:
    """Return whether a known version precedes `limit`; an unknown one counts as current."""
    known = version_number(version)
    return known is not None and known < (version_number(limit) or (0, 0, 0))


def _by_memory(rule: dict[str, Any], part: Accelerator) -> int:
    large = part.hbm_bytes >= parse_bytes(rule["large_memory_from"])
    if part.name in rule.get("large_except", ()):
        large = False
    return int(rule["large"] if large else rule["small"])


def max_num_batched_tokens(deployment: Deployment, accelerator: Accelerator) -> int:
    """Return the tokens of one engine step: the user's, else the engine's default [tokens]."""
    if deployment.max_num_batched_tokens is not None:
        return deployment.max_num_batched_tokens
    rule = _table()["max_num_batched_tokens"][deployment.engine]
    largest = rule.get("largest")
    if largest and version_number(deployment.engine_version) is not None:
        wide = accelerator.hbm_bytes >= parse_bytes(largest["memory_from"])
        if wide and not is_before(deployment.engine_version, largest["since"]):
            return int(largest["tokens"])
    return _by_memory(rule, accelerator)


def max_num_seqs(deployment: Deployment, accelerator: Accelerator) -> int:
    """Return the limit on running requests: the user's, else the engine's default [1]."""
    if deployment.max_num_seqs is not None:
        return deployment.max_num_seqs
    return _by_memory(_table()["max_num_seqs"][deployment.engine], accelerator)


def profiled_tokens(deployment: Deployment, accelerator: Accelerator, model: Model) -> int:
    """Return the tokens of the start-up profile: one step, or a whole request in early builds.

    Notes
    -----
    Builds before chunked prefill became the default (V0) profile a prompt of maximal length; for
    long ones they switch to chunks, so that a longer limit can start where a shorter one fails.
    """
    rule = _table()["whole_prompt_profile"]
    step = max_num_batched_tokens(deployment, accelerator)
    version = deployment.engine_version
    if "V0" not in version and not is_before(version, rule["before"]):
        return step
    longest, chunked = max_model_len(deployment, model), rule["chunked"]
    in_chunks = accelerator.vendor in chunked["vendors"] and not is_before(
        version, chunked["since"]
    )
    if in_chunks and longest > chunked["above_tokens"]:
        return step
    return max(step, min(longest, int(rule["up_to_tokens"])))


def latent_entry_elements(width: int, heads: int, deployment: Deployment) -> int:
    """Return the elements that one latent attention layer caches per token on a rank [1].

    Notes
    -----
    The latent itself, `width`, in current builds; early builds cached padded keys and values of
    every head, then the latent padded to a multiple.
    """
    rule = _table()["latent_cache"]
    version = deployment.engine_version
    if deployment.engine != "vllm" or not is_before(version, rule["padded_before"]):
        return width
    if is_before(version, rule["per_head_before"]):
        return 2 * int(rule["per_head_width"]) * max(1, heads // deployment.tp)
    multiple = int(rule["padded_multiple"])
    return multiple * -(-width // multiple)


def expert_width(width: int, number_format: str, deployment: Deployment) -> int:
    """Return the stored input width of an expert's matrices in a format [1]."""
    by_engine = _table()["expert_width_multiple"].get(number_format, {})
    multiple = int(by_engine.get(deployment.engine, 1))
    return multiple * -(-width // multiple)


def max_model_len(deployment: Deployment, model: Model) -> int:
    """Return the longest request: the user's, else the model's own [tokens]."""
    return deployment.max_model_len or model.max_position_tokens


def _attention_class(model: Model) -> str:
    for group in model.layers:
        if isinstance(group.mixer, CompressedAttention):
            return "compressed"
        if isinstance(group.mixer, LatentAttention):
            return "sparse_latent" if group.mixer.indexer else "latent"
    return "default"


def block_tokens(model: Model, deployment: Deployment) -> int:
    """Return the engine's block length for a model without recurrent layers [tokens]."""
    return int(_table()["block_tokens"][deployment.engine][_attention_class(model)])


def state_alignment_tokens(model: Model, deployment: Deployment) -> int:
    """Return the multiple that a lengthened block must be of, by attention kernel [tokens]."""
    rule = _table()["state_alignment_tokens"]
    if _attention_class(model) == "default":
        return int(rule["default"])
    early = rule["latent_before"]
    if is_before(deployment.engine_version, early["version"]):
        return int(early["tokens"])
    return int(rule["latent"])


def reports_by_concurrency(deployment: Deployment) -> bool:
    """Return whether the logged tokens are concurrency times the longest request."""
    since = _table()["token_report"]["by_concurrency_since"]
    return not is_before(deployment.engine_version, since)


def caches_hybrid_prefixes(deployment: Deployment) -> bool:
    """Return whether finished prefixes of a model with recurrent layers stay for reuse."""
    since = _table()["hybrid_prefix_caching"]["since"]
    return deployment.prefix_caching and not is_before(deployment.engine_version, since)
