"""Hugging Face `config.json` → `Model`: every family's names, checked, nothing guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import IngestError, SpecError
from ..spec.model import LayerGroup, Model
from .hf_families import FAMILIES, Family, family_name
from .hf_feed_forward import feed_forward_of_block, feed_forwards
from .hf_fields import Fields
from .hf_mixers import block_types, grouped_query, mixers
from .hf_precision import weight_precision

_TEXT_PARTS = ("text_config", "llm_config", "language_config")
_MTP_COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
_DEPTH_LIMIT_BYTES = 64 * 2**20


def load_model(text: str) -> Model:
    """Return the model that `text` names: a catalog name or id, a `config.json`, or its folder.

    Raises
    ------
    IngestError
        If the file is not readable JSON with one object in it.
    SpecError
        If the name is unknown, or the configuration describes no known architecture.
    """
    file = _config_file(text)
    if file is None:
        from ..catalog import model

        return model(text)
    listed = None if file.exists() else _listed_name(text)
    if listed is not None:
        from ..catalog import model

        return model(listed)
    config = read_config(file)
    if isinstance(config.get("config"), Mapping):
        name = str(config.get("name", file.stem))
        published = config.get("published")
        return model_from_config(
            dict(config["config"]),
            name=name,
            published=dict(published) if isinstance(published, Mapping) else None,
            source=str(config.get("source", file.name)),
        )
    stem = file.parent.name if file.name == "config.json" else file.stem
    name = str(config.get("_name_or_path") or stem)
    return model_from_config(config, name=name, source=file.name)


def _listed_name(text: str) -> str | None:
    """Return the catalog name of a model written as its Hugging Face id, ``organisation/name``."""
    from ..catalog import names, raw_item

    wanted = text.casefold()
    for name in names("models"):
        if str(raw_item("models", name).get("name", "")).casefold() == wanted:
            return name
    return None


def _config_file(text: str) -> Path | None:
    """Return the file that `text` points to, None where it can only be a catalog name."""
    path = Path(text)
    try:
        if text and path.is_dir() and ("/" in text or (path / "config.json").is_file()):
            return path / "config.json"
    except OSError as error:
        raise IngestError(f"cannot be read ({error.strerror}).", file=text[:80]) from None
    return path if "/" in text or text.endswith(".json") else None


def read_config(file: Path) -> dict[str, Any]:
    """Return the JSON object in `file`.

    Raises
    ------
    IngestError
        If the file is absent, too large, truncated, or not one JSON object.
    """
    try:
        if file.stat().st_size > _DEPTH_LIMIT_BYTES:
            raise IngestError("too large for a model configuration.", file=str(file))
        content = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise IngestError(
            f"not valid JSON ({error.msg}); is the file complete?",
            file=str(file),
            line=error.lineno,
        ) from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise IngestError("not a JSON text file.", file=str(file)) from None
    except OSError as error:
        raise IngestError(f"cannot be read ({error.strerror}).", file=str(file)) from None
    if not isinstance(content, dict):
        raise IngestError("expected one JSON object.", file=str(file))
    return content


def model_from_config(
    config: dict[str, Any],
    *,
    name: str,
    published: Mapping[str, Any] | None = None,
    source: str = "",
) -> Model:
    """Return the text model that a Hugging Face configuration describes.

    Parameters
    ----------
    config : dict
        The configuration; a text part nested in a multimodal one is found.
    name : str
        Name for messages and reports.
    published : mapping, optional
        Published counts, kept for checks.
    source : str
        Where the configuration comes from.

    Raises
    ------
    SpecError
        If a field is malformed, or a mixer or layer type has no description here.
    """
    if not isinstance(config, Mapping):
        raise SpecError(f"{name}: a configuration is a JSON object.", field="config")
    fields = _text_fields(config, name)
    kind = family_name(fields.text("model_type"))
    family = FAMILIES[kind]
    layers = fields.layer_count()
    stack = list(
        zip(mixers(fields, kind, family), feed_forwards(fields, kind, family), strict=True)
    )
    if len(stack) != layers:
        raise SpecError(
            f"{name}: {len(stack)} layer types for {layers} layers.", field="num_hidden_layers"
        )
    groups = tuple(_merged([LayerGroup(mixer=m, feed_forward=f, count=1) for m, f in stack]))
    mtp_layers = fields.size(*_MTP_COUNTS, default=0, low=0)
    hidden = fields.size("hidden_size", "n_embd")
    return Model(
        name=name,
        family=kind,
        hidden_size=hidden,
        vocab_size=fields.size("vocab_size"),
        max_position_tokens=fields.size("max_position_embeddings", "n_positions", "max_seq_len"),
        tied_embeddings=fields.flag("tie_word_embeddings", family.tied),
        layers=groups,
        precision=weight_precision(fields),
        norms_per_layer=family.norms_per_layer,
        extra_params=_extra_params(fields, kind, layers, hidden),
        mtp_layers=mtp_layers,
        mtp_stack=_mtp_stack(fields, kind, family, stack) if mtp_layers else (),
        mtp_embeddings=family.mtp_embeddings,
        state_format=_state_format(fields, family),
        residual_copies=fields.size("attn_res_block_size", "hc_mult", default=0, low=0),
        vision_params=_vision_params(fields, hidden),
        published=dict(published or {}),
        source=source,
    )


def _text_fields(config: Mapping[str, Any], name: str) -> Fields:
    outer = Fields(config, name)
    for key in _TEXT_PARTS:
        inner = outer.part(key)
        if inner.data:
            merged = {**{k: v for k, v in config.items() if k not in _TEXT_PARTS}, **inner.data}
            return Fields(merged, name)
    return outer


def _merged(groups: list[LayerGroup]) -> list[LayerGroup]:
    merged: list[LayerGroup] = []
    for group in groups:
        last = merged[-1] if merged else None
        if last and (last.mixer, last.feed_forward) == (group.mixer, group.feed_forward):
            merged[-1] = LayerGroup(
                mixer=last.mixer, feed_forward=last.feed_forward, count=last.count + 1
            )
        else:
            merged.append(group)
    return merged


def _mtp_stack(
    fields: Fields, kind: str, family: Family, stack: list[tuple[Any, Any]]
) -> tuple[LayerGroup, ...]:
    """Layers of one prediction module: by its own pattern, else a copy of the last layer."""
    types = block_types(fields, prefix="mtp_") if family.mixer == "mamba" else []
    if types:
        attention = grouped_query(fields, kind, family)
        return tuple(
            LayerGroup(
                mixer=attention if block == "attention" else None,
                feed_forward=feed_forward_of_block(fields, kind, family, block),
                count=1,
            )
            for block in types
        )
    full_mixers = [m for m, _ in stack if m is not None and not _is_recurrent(m)]
    feed_forward = stack[-1][1]
    if not full_mixers or (feed_forward is None and not stack):
        return ()
    mixer = next((m for m in full_mixers if not _is_follower(m)), full_mixers[-1])
    return (LayerGroup(mixer=mixer, feed_forward=feed_forward, count=1),)


def _is_recurrent(mixer: Any) -> bool:
    return type(mixer).__name__ in (
        "KimiDeltaAttention", "GatedDeltaNet", "Mamba2", "LightningAttention",
    )  # fmt: skip


def _is_follower(mixer: Any) -> bool:
    indexer = getattr(mixer, "indexer", None)
    return indexer is not None and bool(indexer.shared)


def _state_format(fields: Fields, family: Family) -> str:
    """Format of a recurrent state: its own field, else the kernel's, else the engine's choice."""
    named = fields.text("mamba_ssm_cache_dtype", fields.text("mamba_ssm_dtype"))
    formats = {"float32": "fp32", "bfloat16": "bf16", "float16": "bf16"}
    if named in formats:
        return formats[named]
    return "fp32" if family.mixer in ("kimi_delta", "lightning") else "auto"


def _extra_params(fields: Fields, kind: str, layers: int, hidden: int) -> int:
    """Residual mixers: K3's attention residuals, DeepSeek-V4's hyper-connections [1]."""
    if "attn_res_block_size" in fields:
        return 4 * hidden * layers + 2 * hidden
    if "hc_mult" in fields:
        n = fields.size("hc_mult")
        per_half = (2 + n) * n * (n * hidden) + (2 + n) * n + 3
        return layers * 2 * per_half + n * n * hidden + n + 1
    return 0


def _vision_params(fields: Fields, hidden: int) -> int:
    """Estimate of the vision tower: four projections and a two-matrix block per layer [1]."""
    vision = fields.part("vision_config")
    if not vision.data or not vision.has("hidden_size", "vt_hidden_size"):
        return 0
    width = vision.size("hidden_size", "vt_hidden_size")
    inner = vision.size("intermediate_size", "vt_intermediate_size", default=4 * width)
    depth = vision.size("num_hidden_layers", "vt_num_hidden_layers", "depth", default=0, low=0)
    attention = vision.size("qkv_hidden_size", default=width)
    return depth * (4 * width * attention + 2 * width * inner)
