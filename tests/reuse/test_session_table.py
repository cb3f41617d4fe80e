import math
from dataclasses import replace

import numpy as np
import pytest

from capmodel.errors import SpecError

from .sessions_for_tests import drawn_table


def test_a_cap_cuts_gaps_and_nothing_else():
    table = drawn_table()
    cut = table.capped(5.0)
    assert cut.think_s.max() == 5.0
    assert np.array_equal(cut.think_s, np.minimum(table.think_s, 5.0))
    assert table.capped(math.inf) is table
    with pytest.raises(SpecError, match="negative"):
        table.capped(-1.0)


def test_an_idle_limit_ends_sessions_and_what_follows_finds_nothing():
    table = drawn_table()
    split = table.split_at_idle(20.0)
    long_gaps = int((table.think_s > 20.0).sum())
    assert long_gaps > 0
    assert split.sessions == table.sessions + long_gaps
    assert split.think_s.max() <= 20.0
    assert np.all(split.prefix_tokens[split.session_starts[:-1]] == 0)


def test_a_preset_must_be_known():
    with pytest.raises(SpecError, match="benchmark"):
        drawn_table().with_gaps("production-ish")


def test_following_values_stay_inside_a_session():
    table = drawn_table()
    following = table.following(table.prefix_tokens)
    assert np.all(following[table.is_last] == 0)
    inner = np.flatnonzero(~table.is_last)
    assert np.array_equal(following[inner], table.prefix_tokens[inner + 1])


def test_bad_columns_are_named():
    table = drawn_table()
    with pytest.raises(SpecError, match="think_s"):
        replace(table, think_s=table.think_s - 1000.0)
    with pytest.raises(SpecError, match="prefix cannot exceed"):
        replace(table, prefix_tokens=table.input_tokens + 1.0)
    with pytest.raises(SpecError, match="earlier request"):
        replace(table, prefix_lag=table.prefix_lag + 1)
