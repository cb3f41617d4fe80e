"""Configuration reader: every catalog model, every spelling, and nothing but clear refusals."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capmodel import catalog
from capmodel.errors import CapmodelError, IngestError, SpecError
from capmodel.ingest.hf_config import load_model, model_from_config
from capmodel.memory.budget import kv_budget
from capmodel.memory.params import parameters
from capmodel.spec.attention import GroupedQueryAttention, LatentAttention
from capmodel.spec.deployment import Deployment
from capmodel.spec.model import MixtureOfExperts, Model

NAMES = catalog.names("models")


def config_of(name: str) -> dict[str, Any]:
    return copy.deepcopy(catalog.raw_item("models", name)["config"])


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_through_a_config_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config_of(name)), encoding="utf-8")
    of_folder, of_catalog = load_model(str(tmp_path)), catalog.model(name)
    assert of_folder.layers == of_catalog.layers
    assert parameters(of_folder) == parameters(of_catalog)
    assert of_folder.precision == of_catalog.precision
    assert load_model(str(tmp_path / "config.json")).layers == of_catalog.layers


@pytest.mark.parametrize("name", NAMES)
def test_layers_are_complete_and_neighbours_merged(name: str) -> None:
    model = catalog.model(name)
    config = config_of(name)
    text = config.get("text_config", config)
    assert model.layer_count == text["num_hidden_layers"]
    for left, right in zip(model.layers, model.layers[1:], strict=False):
        assert (left.mixer, left.feed_forward) != (right.mixer, right.feed_forward)


def test_reference_configs_are_the_catalogs(reference: Path) -> None:
    files = sorted((reference / "models").glob("*.json"))
    assert len(files) == 38
    for file in files:
        model = load_model(str(file))
        assert model.layers == catalog.model(file.stem).layers, file.name


@pytest.mark.parametrize("wrapper", ["text_config", "llm_config", "language_config"])
def test_a_nested_text_part_is_found(wrapper: str) -> None:
    inner = config_of("qwen3-8b")
    outer = {"model_type": "some_vl_model", wrapper: inner, "tie_word_embeddings": False}
    assert model_from_config(outer, name="nested").layers == catalog.model("qwen3-8b").layers


@pytest.mark.parametrize(
    "spelling", ["n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"]
)
def test_expert_counts_have_many_names(spelling: str) -> None:
    config = config_of("qwen3-30b-a3b")
    config[spelling] = config.pop("num_experts")
    block = model_from_config(config, name="renamed").layers[0].feed_forward
    assert isinstance(block, MixtureOfExperts)
    assert block.experts == 128


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("llama-3.1-8b", {"model_type": "retnet"}),
        ("llama-3.1-8b", {"kv_lora_rank": 512}),
        ("llama-3.1-8b", {"layer_types": ["full_attention"] * 31 + ["retention"]}),
        ("qwen3-8b", {"ssm_state_size": 128}),
        ("qwen3-8b", {"linear_attn_config": {"num_heads": 4}}),
        ("qwen3-next-80b-a3b", {"layer_types": ["recurrent"] * 48}),
        ("nemotron-h-56b", {"hybrid_override_pattern": "M-M-Q"}),
        ("minimax-m1-80k", {"attn_type_list": [2] * 80}),
        ("glm-5.2", {"indexer_types": ["half"] * 78}),
        ("deepseek-v4-pro", {"compress_ratios": [8] * 61}),
        ("kimi-k3", {"quantization_config": {"quant_method": "telepathy"}}),
    ],
)
def test_unknown_mixers_are_refused(name: str, change: dict[str, Any]) -> None:
    config = {**config_of(name), **change}
    with pytest.raises(SpecError):
        model_from_config(config, name=name)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": -1},
        {"hidden_size": True},
        {"hidden_size": "4096"},
        {"num_hidden_layers": 10**9},
        {"num_attention_heads": 1e300},
        {"num_key_value_heads": float("nan")},
        {"vocab_size": None},
        {"max_position_embeddings": []},
        {"layer_types": ["full_attention"]},
        {"text_config": 3},
    ],
)
def test_malformed_fields_name_themselves(change: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as caught:
        model_from_config({**config_of("llama-3.1-8b"), **change}, name="bad")
    assert next(iter(change)) in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b'{"model_type": "llama", "hidden', b"", b"[1, 2]", b"\xff\xfe\x00", b"nul", b"[" * 100_000],
)
def test_truncated_files_give_one_message(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(IngestError) as caught:
        load_model(str(file))
    assert "config.json" in str(caught.value)


def test_an_absent_path_and_an_unknown_name_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(IngestError):
        load_model(str(tmp_path / "nowhere" / "config.json"))
    with pytest.raises(SpecError, match="kimi-k3"):
        load_model("kimi-k33")


junk = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**13), st.floats(), st.text(max_size=6),
    st.lists(st.integers(-1, 3), max_size=3), st.dictionaries(st.text(max_size=3), st.integers()),
)  # fmt: skip


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(NAMES), data=st.data())
def test_fuzzed_fields_give_a_model_or_a_clear_error(name: str, data: st.DataObject) -> None:
    config = config_of(name)
    part = config.get("text_config", config) if data.draw(st.booleans()) else config
    for key in data.draw(st.lists(st.sampled_from(sorted(part)), min_size=1, max_size=3)):
        if data.draw(st.booleans()):
            part.pop(key, None)
        else:
            part[key] = data.draw(junk)
    try:
        model = model_from_config(config, name="fuzzed")
        kv_budget(model, catalog.node("8xB300"), Deployment(tp=8))
    except CapmodelError as error:
        assert str(error)
    else:
        assert isinstance(model, Model)
        assert parameters(model).total > 0


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=200))
def test_fuzzed_bytes_never_give_a_traceback(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("fuzz") / "config.json"
    file.write_bytes(content)
    with pytest.raises(CapmodelError):
        load_model(str(file))


def test_windows_and_gates_are_read() -> None:
    gemma = [g.mixer for g in catalog.model("gemma-3-27b").layers]
    windows = {m.window_tokens for m in gemma if isinstance(m, GroupedQueryAttention)}
    assert windows == {None, 1024}
    k3 = [g.mixer for g in catalog.model("kimi-k3").layers if isinstance(g.mixer, LatentAttention)]
    assert k3[0].output_gate


AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}
GROUPED = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*mlp.gate$"],
}


@pytest.mark.parametrize(
    ("quantization", "experts", "attention"),
    [
        (None, "bf16", "bf16"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", "fp8"),
        ({"quant_method": "fp8", "scale_fmt": "ue8m0"}, "fp8_ue8m0", "fp8_ue8m0"),
        ({"quant_method": "mxfp4"}, "mxfp4", "bf16"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", "nvfp4"),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["*self_attn*"]},
            "nvfp4",
            "bf16",
        ),
        (AWQ, "int4_g128", "int4_g128"),
        ({**AWQ, "quant_method": "gptq_marlin"}, "int4_g128", "int4_g128"),
        (GROUPED, "int4", "bf16"),
        (
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}},
            "mxfp4",
            "mxfp4",
        ),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", "int4"),
    ],
)
def test_quantisation_layouts(
    quantization: dict[str, Any] | None, experts: str, attention: str
) -> None:
    config = {**config_of("qwen3-30b-a3b"), "quantization_config": quantization}
    precision = model_from_config(config, name="quantised").precision
    assert (precision.routed_experts, precision.attention) == (experts, attention)
    assert precision.head == "bf16"


def test_an_expression_that_never_ends_is_not_tried() -> None:
    config = config_of("qwen3-30b-a3b")
    endless = r"re:(\w+)+\d$"
    config["quantization_config"] = {**AWQ, "modules_to_not_convert": [endless, "re:["]}
    assert model_from_config(config, name="endless").precision.attention == "int4_g128"


def test_a_folder_of_a_catalog_name_needs_a_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kimi-k3").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_model("kimi-k3").layers == catalog.model("kimi-k3").layers
    (tmp_path / "kimi-k3" / "config.json").write_text(json.dumps(config_of("qwen3-8b")))
    assert load_model("kimi-k3").family == "qwen3"


@pytest.mark.parametrize("text", ["", "a" * 5000, "a" * 5000 + "/config.json", "x\0y", "\0/c.json"])
def test_odd_names_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(CapmodelError):
        load_model(text)
