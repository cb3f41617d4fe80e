"""The short corpus: closed moments of cut prompts against drawn ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from capmodel import catalog
from capmodel.validate.corpus import without_long_prompts

FULL = catalog.workload("agentic-coding")


def test_moments_of_cut_prompts_agree_with_draws() -> None:
    short = without_long_prompts(FULL, 262_144)
    sigma = math.sqrt(math.log1p(FULL.request_tokens_cv**2))
    rng = np.random.default_rng(0)
    draws = FULL.request_tokens_mean * np.exp(sigma * rng.normal(size=400_000) - 0.5 * sigma**2)
    kept = draws[draws <= 262_144]
    assert short.request_tokens_mean == pytest.approx(kept.mean(), rel=5e-3)
    assert short.request_tokens_cv == pytest.approx(kept.std() / kept.mean(), rel=1e-2)


def test_a_cut_beyond_every_prompt_changes_nothing() -> None:
    same = without_long_prompts(FULL, 1e12)
    assert same.request_tokens_mean == pytest.approx(FULL.request_tokens_mean)
    assert same.tree_tokens_mean == pytest.approx(FULL.tree_tokens_mean)


def test_the_tree_shrinks_with_its_prompts() -> None:
    short = without_long_prompts(FULL, 262_144)
    ratio = short.request_tokens_mean / FULL.request_tokens_mean
    assert short.tree_tokens_mean / FULL.tree_tokens_mean == pytest.approx(ratio)
    assert short.intervals["tree_tokens_mean"][0] < short.tree_tokens_mean
