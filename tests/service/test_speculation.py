"""Drafts: data, refusals, what verification costs and when it stops paying."""

from __future__ import annotations

from itertools import pairwise

import pytest

from capmodel import catalog
from capmodel.errors import SpecError
from capmodel.service.engine_law import engine_law
from capmodel.service.speculation import (
    accepted_length,
    break_even_sequences,
    draft,
    draft_kv_share,
    draft_passes,
    speculation_gain,
)
from capmodel.spec.deployment import Deployment, Speculation

GOLDEN = (1.85, 2.51, 3.00, 3.36, 3.62, 3.75, 3.84, 4.00)


def _law(depth: int | None, *, name: str = "kimi-k3", draft_name: str = "dspark", **layout: object):  # type: ignore[no-untyped-def]
    speculation = Speculation(name=draft_name, draft_tokens=depth) if depth else None
    return engine_law(
        catalog.model(name),
        catalog.node("8xB300"),
        Deployment(engine="sglang", tp=8, speculation=speculation, **layout),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("depth", "length"), list(enumerate(GOLDEN, start=1)))
def test_golden_curve_is_the_published_one(depth: int, length: float) -> None:
    found = accepted_length(Speculation(name="dspark", draft_tokens=depth))
    assert found.value == length
    assert found.low <= found.value <= found.high


def test_real_acceptance_stays_in_the_measured_band() -> None:
    for depth in range(1, 8):
        speculation = Speculation(name="dspark", draft_tokens=depth, acceptance="real")
        assert 1.16 <= accepted_length(speculation).value <= 2.01


def test_accepted_length_never_falls_with_depth_nor_exceeds_it() -> None:
    for name in ("dspark", "mtp", "eagle3"):
        for acceptance in ("golden", "real"):
            lengths = [
                accepted_length(Speculation(name=name, draft_tokens=k, acceptance=acceptance)).value
                for k in range(1, 9)
            ]
            assert all(a <= b for a, b in pairwise(lengths))
            assert all(1 <= length <= 1 + k for k, length in enumerate(lengths, start=1))


def test_unknown_draft_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match="dspark"):
        draft("dsparc")
    assert draft("EAGLE") is draft("eagle3")


def test_sequential_drafts_run_once_per_token() -> None:
    assert draft_passes(Speculation(name="mtp", draft_tokens=3)) == 3
    assert draft_passes(Speculation(name="dspark", draft_tokens=7)) == 1


def test_day_zero_refuses_dspark_over_a_pipeline_and_names_what_lifted_it() -> None:
    model, node = catalog.model("kimi-k3"), catalog.node("8xB200", 2)
    speculation = Speculation(name="dspark", draft_tokens=7)
    for version in ("", "day-0", "0.27.1"):
        with pytest.raises(SpecError, match="50514"):
            engine_law(
                model,
                node,
                Deployment(tp=8, pp=2, engine_version=version, speculation=speculation),
            )
    later = Deployment(tp=8, pp=2, engine_version="0.28.1", speculation=speculation)
    assert engine_law(model, node, later).verify_tokens == 8


def test_a_verify_step_costs_more_than_a_plain_one_and_at_most_its_positions() -> None:
    plain, drafted = _law(None), _law(7)
    for batch in (1.0, 16.0, 64.0, 200.0):
        ratio = float(drafted.step_s(0.0, 0.0, batch, 9000.0)) / float(
            plain.step_s(0.0, 0.0, batch, 9000.0)
        )
        assert 1.0 < ratio < 8.5


def test_drafting_pays_less_as_the_batch_grows() -> None:
    plain, drafted = _law(None), _law(7)
    gains = [speculation_gain(plain, drafted, batch, 9000.0) for batch in (1.0, 16.0, 64.0, 250.0)]
    assert gains[0] > 2.0
    assert gains[0] > gains[1] > 1.0
    assert gains[3] < gains[0]


def test_break_even_is_where_the_gain_is_one() -> None:
    model, node = catalog.model("llama-3.1-70b"), catalog.node("8xB300")
    shape = {"engine": "sglang", "tp": 8, "max_num_seqs": 4096}
    plain = engine_law(model, node, Deployment(**shape))  # type: ignore[arg-type]
    real = Speculation(name="eagle3", draft_tokens=3, acceptance="real")
    drafted = engine_law(model, node, Deployment(**shape, speculation=real))  # type: ignore[arg-type]
    batch = break_even_sequences(plain, drafted, 4000.0)
    assert batch is not None
    assert speculation_gain(plain, drafted, batch, 4000.0) <= 1.0
    if batch > 1.0:
        assert speculation_gain(plain, drafted, batch - 1.0, 4000.0) > 1.0


def test_the_draft_takes_its_layers_share_of_the_cache() -> None:
    model = catalog.model("kimi-k3")
    drafted = Deployment(
        tp=8, kv_dtype="fp8", speculation=Speculation(name="dspark", draft_tokens=7)
    )
    assert draft_kv_share(model, drafted) == pytest.approx(5 / 29)
    assert draft_kv_share(model, Deployment(tp=8)) == 0.0
