"""Bytes per token and per sequence, and the laws of their division over ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capmodel import catalog
from capmodel.memory import kv_layout
from capmodel.spec.attention import LatentAttention
from capmodel.spec.deployment import Deployment, Speculation

LATENT = [
    n
    for n in catalog.names("models")
    if all(isinstance(g.mixer, LatentAttention) for g in catalog.model(n).layers)
]
GROUPED = ["llama-3.1-70b", "qwen3-235b-a22b", "glm-4.5", "minimax-m2"]


def test_reference_table_of_kv_and_state_bytes(reference: Path) -> None:
    text = (reference / "models.md").read_text(encoding="utf-8")
    table = text.split("## 8.")[1].split("## 9.")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if re.match(r"\| [a-z0-9.\-]+ \|", line) and "mixers" not in line
    ]
    assert len(rows) == 38
    for name, _, bf16, _, window, state, conv, *_ in rows:
        # SGLang keeps every state in fp32, as the table has it.
        model, plain = catalog.model(name), Deployment(engine="sglang")
        assert kv_layout.kv_bytes_per_token(model, plain) == pytest.approx(number(bf16), abs=0.5)
        fixed = kv_layout.state_bytes_per_sequence(model, plain)
        assert fixed == number(window) + number(state) + number(conv), name


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize("name", LATENT)
@pytest.mark.parametrize("tp", [1, 2, 8])
def test_a_latent_is_whole_on_every_rank(name: str, tp: int) -> None:
    model = catalog.model(name)
    alone = kv_layout.kv_bytes_per_token(model, Deployment())
    assert kv_layout.kv_bytes_per_token(model, Deployment(tp=tp)) == alone
    assert kv_layout.kv_replication(model, Deployment(tp=tp)) == tp


@pytest.mark.parametrize("name", GROUPED)
def test_heads_are_divided_until_there_is_one_each_and_then_copied(name: str) -> None:
    model = catalog.model(name)
    heads = model.layers[0].mixer.kv_heads  # type: ignore[union-attr]
    alone = kv_layout.kv_bytes_per_token(model, Deployment())
    for tp in (1, 2, 4, 8, 16):
        on_rank = kv_layout.kv_bytes_per_token(model, Deployment(tp=tp))
        assert on_rank == alone / min(tp, heads)
        assert kv_layout.kv_replication(model, Deployment(tp=tp)) == max(1, tp / heads)


@pytest.mark.parametrize("name", LATENT)
def test_context_parallelism_divides_tokens_and_undoes_the_copies(name: str) -> None:
    model = catalog.model(name)
    deployment = Deployment(tp=8, dcp=8)
    alone = kv_layout.kv_bytes_per_token(model, Deployment())
    assert kv_layout.kv_bytes_per_token(model, deployment) == alone / 8
    assert kv_layout.kv_replication(model, deployment) == 1


@given(st.sampled_from(catalog.names("models")), st.sampled_from([1, 2, 4, 8]))
def test_unique_bytes_do_not_depend_on_the_ranks(name: str, tp: int) -> None:
    # Every rank needs a whole head; models with fewer heads than ranks keep one copy's bytes.
    model = catalog.model(name)
    alone = kv_layout.unique_kv_bytes_per_token(model, Deployment())
    assert kv_layout.unique_kv_bytes_per_token(model, Deployment(tp=tp)) == pytest.approx(alone)


def test_sparse_latents_have_an_fp8_record_of_656_bytes() -> None:
    # GLM-5.1 in vLLM: 78 x (656 + 132) B per token, as its logs have it.
    model = catalog.model("glm-5.1")
    assert kv_layout.kv_bytes_per_token(model, Deployment(kv_dtype="fp8")) == 78 * (656 + 132)
    atom = Deployment(kv_dtype="fp8", engine="atom")
    glm = catalog.model("glm-5.2")
    assert kv_layout.kv_bytes_per_token(glm, atom) == 78 * 576 + 21 * 132


def test_drafts_lengthen_the_convolution_state() -> None:
    # 54.78 MiB per rank with two draft tokens at TP8, as a recipe states it.
    model = catalog.model("kimi-k3")
    drafted = Deployment(tp=8, speculation=Speculation(name="dspark", draft_tokens=2))
    assert kv_layout.state_bytes_per_sequence(model, drafted) / 2**20 == pytest.approx(
        54.78, abs=0.01
    )
