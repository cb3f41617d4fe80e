"""Configuration → which tensor class the checkpoint stores in which number format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..errors import SpecError
from ..spec.precision import WeightPrecision
from .hf_fields import Fields

# A tensor name of each class, against which the "not quantized" patterns of a file are tried.
_PROBES = {
    "routed_experts": (
        "model.layers.5.mlp.experts.0.down_proj",
        "model.layers.5.block_sparse_moe.experts.0.w2",
    ),
    "shared_experts": (
        "model.layers.5.mlp.shared_experts.down_proj",
        "model.layers.5.block_sparse_moe.shared_experts.down_proj",
    ),
    "dense_feed_forward": ("model.layers.5.mlp.down_proj",),
    "attention": ("model.layers.5.self_attn.o_proj", "model.layers.5.linear_attn.out_proj"),
}
LONGEST_EXPRESSION = 200
_IGNORE_KEYS = (
    "not_quantized",
    "ignore",
    "modules_to_not_convert",
    "exclude_modules",
    "ignored_layers",
)


def weight_precision(fields: Fields) -> WeightPrecision:
    """Return the layout that `quantization_config` describes; bf16 where there is none.

    Raises
    ------
    SpecError
        If the method or its number format is not known.
    """
    config = fields.part("quantization_config")
    if not config.data:
        return WeightPrecision()
    method = config.text("quant_method", config.text("quant_algo")).lower()
    name = _format_name(config, method)
    if method == "mxfp4" or fields.text("expert_dtype") == "fp4":
        experts = "mxfp4"
        rest = WeightPrecision() if method == "mxfp4" else WeightPrecision.uniform(name)
        return replace(rest, routed_experts=experts)
    ignored = _ignored(config)
    classes = {c: "bf16" if _matches(ignored, probes) else name for c, probes in _PROBES.items()}
    # Latent projections sit beside the shared experts and are kept with them.
    return WeightPrecision(**{**classes, "head": "bf16", "latent": classes["shared_experts"]})


def _format_name(config: Fields, method: str) -> str:
    layout = config.text("format")
    if method == "quark":
        method = config.part("global_quant_config").part("weight").text("dtype", "fp8")
        method = "mxfp4" if method == "fp4" else method
    if "fp8" in method:
        if config.text("scale_fmt") == "ue8m0":
            return "fp8_ue8m0"
        return "mxfp8" if method == "mxfp8" else "fp8"
    if "nvfp4" in method or "nvfp4" in layout or method == "fp4":
        return "nvfp4"
    if "mxfp4" in method or "mxfp4" in layout:
        return "mxfp4"
    if method.removesuffix("_marlin") in (
        "compressed-tensors",
        "awq",
        "gptq",
        "auto-round",
        "intel/auto-round",
        "modelopt",
    ):
        return _grouped_format(config, method)
    if method in ("bitsandbytes",):
        return "int4" if config.flag("load_in_4bit", False) else "int8"
    raise SpecError(
        f"{config.name}: quantisation method {method!r} is not known.", field="quantization_config"
    )


def _grouped_format(config: Fields, method: str) -> str:
    weights = config.part("weights")
    if not weights.data:
        groups = config.part("config_groups")
        first = next(iter(groups.data), None)
        weights = groups.part(first).part("weights") if first else Fields({}, config.name)
    algorithm = config.text("quant_algo").upper()
    if "NVFP4" in algorithm:
        return "nvfp4"
    if "FP8" in algorithm:
        return "fp8"
    source = weights if weights.data else config
    bits = source.size("num_bits", "bits", "w_bit")
    if bits == 8:
        return "int8" if source.text("type", "int") == "int" else "fp8"
    if bits != 4:
        raise SpecError(f"{config.name}: {bits}-bit weights are not known.", field="num_bits")
    if source.text("type", "int") == "float":
        return "nvfp4" if source.size("group_size", default=16) == 16 else "mxfp4"
    return "int4" if source.size("group_size", "q_group_size", default=128) <= 32 else "int4_g128"


def _ignored(config: Fields) -> list[str]:
    found: list[str] = []
    for key in _IGNORE_KEYS:
        found += [value for value in config.sequence(key) if isinstance(value, str)]
    return found


def _matches(patterns: Sequence[str], names: Sequence[str]) -> bool:
    for pattern in patterns:
        for name in names:
            if pattern.startswith("re:"):
                if _is_match(pattern[3:], name):
                    return True
            else:
                fragment = pattern.replace("model.layers.*.", "").strip("*.")
                if fragment and re.search(rf"(^|\.){re.escape(fragment)}($|\.)", name):
                    return True
    return False


def _is_match(expression: str, name: str) -> bool:
    """Whether a file's own expression matches; repeated groups, which can take for ever, do not."""
    if len(expression) > LONGEST_EXPRESSION or re.search(r"\)[*+{]", expression):
        return False
    try:
        return re.match(expression, name) is not None
    except re.error:
        return False
