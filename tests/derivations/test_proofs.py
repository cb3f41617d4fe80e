"""Property: every step of every proof holds, and a false step would not."""

from __future__ import annotations

import ast
import time

import pytest
import sympy as sp

from derivations import registry
from derivations.proof import Steps

from .proved import NAMES, proved


@pytest.mark.parametrize("name", NAMES)
def test_every_step_holds(name: str) -> None:
    _, result = proved(name)
    assert [check.claim for check in result.checks if not check.ok] == []
    assert len(result.checks) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_statement_and_assumptions_are_given(name: str) -> None:
    item, result = proved(name)
    assert item.title.endswith(".") and item.statement and item.assumptions
    assert set(item.depends_on) <= set(NAMES)
    assert result.claims


def test_the_set_is_as_large_as_promised() -> None:
    counted = [proved(name)[1] for name in NAMES]
    assert len(counted) >= 25
    assert sum(len(result.checks) + len(result.claims) for result in counted) >= 100


def test_each_comes_after_what_it_uses() -> None:
    order = [item.name for item in registry.in_order()]
    assert sorted(order) == sorted(NAMES)
    for item in registry.in_order():
        assert all(order.index(used) < order.index(item.name) for used in item.depends_on)


def test_proofs_are_quick() -> None:
    """A reader waits for all of them: 90 s is promised, on one core and without interruptions."""
    started = time.process_time()
    for name in NAMES:
        proved(name)
    assert time.process_time() - started < 90.0


@pytest.mark.parametrize("name", NAMES)
def test_two_sides_of_a_step_are_written_differently(name: str) -> None:
    """A step whose two sides are the same text could not fail."""
    tree = ast.parse(registry.files()[name].read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "step.equal":
            assert ast.dump(call.args[1]) != ast.dump(call.args[2]), ast.unparse(call)


def test_false_statements_do_not_pass() -> None:
    x, y = sp.symbols("x y", positive=True)
    step = Steps()
    step.equal("wrong factor", (x + y) ** 2, x**2 + x * y + y**2)
    step.equal("wrong sign", sp.exp(-x) * sp.exp(y), sp.exp(x - y))
    step.zero("not zero", sp.sqrt(x**2) - y)
    step.solves("not a root", x**2 - y, x, y)
    step.solves("true for every value", (x + 1) ** 2 - x**2 - 2 * x - 1, x, y)
    step.positive("changes sign", x - y)
    step.negative("is positive", x + y)
    step.rises("falls", 1 / x, x)
    step.falls("rises", x**2, x)
    step.limit("other limit", sp.sin(x) / x, x, 0, 0)
    step.is_true("false relation", sp.Gt(sp.Integer(1), 2))
    assert not any(check.ok for check in step.checks)


def test_true_statements_pass() -> None:
    x, y = sp.symbols("x y", positive=True)
    step = Steps()
    step.equal("binomial", (x + y) ** 2, x**2 + 2 * x * y + y**2)
    step.equal("exponential", sp.exp(-x) * sp.exp(y), sp.exp(y - x))
    step.solves("root", x**2 - y, x, sp.sqrt(y))
    step.positive("square", (x - y) ** 2 + x)
    step.negative("minus", -x - y)
    step.rises("rises", x**2, x)
    step.falls("falls", 1 / x, x)
    step.limit("limit", sp.sin(x) / x, x, 0, 1)
    step.is_true("relation", sp.Gt(sp.Integer(2), 1))
    assert all(check.ok for check in step.checks)
