"""Affinity: limits, and the pooling gain against the closed form it approximates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from capmodel.errors import SpecError
from capmodel.network.critical import critical_concurrency
from capmodel.optimize.affinity import pooling_gain_sessions, randomly_assigned_sessions


def test_random_assignment_keeps_the_quantile() -> None:
    # Same level of live tokens, by simulation of both sums (gamma contexts).
    rng = np.random.default_rng(1)
    fixed, cv, score = 40, 0.77, 1.5
    shape = 1 / cv**2
    mean = randomly_assigned_sessions(fixed, cv, score)
    level = fixed + score * cv * math.sqrt(fixed)
    fixed_sums = rng.gamma(shape * fixed, cv**2, 40_000)
    random_sums = rng.gamma(np.maximum(shape * rng.poisson(mean, 40_000), 1e-9), cv**2)
    over = [(sums > level).mean() for sums in (fixed_sums, random_sums)]
    assert over[0] == pytest.approx(over[1], abs=0.02)
    assert mean < fixed


def test_no_tolerance_asked_no_sessions_lost() -> None:
    assert randomly_assigned_sessions(16, 0.8, score=0.0) == pytest.approx(16)
    with pytest.raises(SpecError):
        randomly_assigned_sessions(0, 0.8)


def test_pooling_gain_is_the_first_order_of_the_closed_form() -> None:
    small, replicas, cv = 400.0, 4, 0.5
    whole = critical_concurrency(replicas * small, 1.0, cv)
    parts = replicas * critical_concurrency(small, 1.0, cv)
    assert pooling_gain_sessions(small, cv, replicas) == pytest.approx(whole - parts, rel=0.08)
    assert pooling_gain_sessions(small, cv, 1) == 0.0
