"""Mutation pass: break each implementing formula in turn and ask whether a claim notices.

Run it as ``python -m tests.derivations.mutation_pass [PART_OF_A_MODULE_NAME ...]``. Signs, factors,
exponents and constants are changed one at a time in the bodies of the implementing functions and of
the private functions they call; a mutant lives if every claim on its module still holds.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import signal
import sys
import types
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from derivations import registry
from derivations.claim import Claim, resolve

SWAPS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
# Smaller or larger constants guard against division by zero; no claim is made about them.
GUARD = 1e-5
# Numerical methods: their starts, dampings and step counts may change without changing what they
# converge to, so their mutants are counted apart.
METHODS = (
    "capmodel.network.fixed_points:", "capmodel.network.amva:solve",
    "capmodel.network.closed_form:solve", "capmodel.normal:quantile", "capmodel.normal:erfc",
    "capmodel.network.service_demand:batch_grid",
    "capmodel.spec.distributions:LognormalMixture.quantile",
    "capmodel.memory.pages:PagePlan.longest_request",
    "capmodel.service.speculation:break_even_sequences",
    "capmodel.service.transfer:break_even_tokens",
)  # fmt: skip
# A mutant that loops for so long is noticed.
LONGEST_S = 20


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where, what, and the changed tree of the whole module."""

    module: str
    function: str
    line: int
    change: str
    tree: ast.Module


@dataclass(frozen=True, slots=True)
class Expected:
    """A claim with its reference values, which do not depend on the code."""

    claim: Claim
    points: tuple[tuple[float, ...], ...]
    values: tuple[float, ...]

    def holds(self) -> bool:
        """Return whether the code, as it is now, has these values."""
        try:
            return all(
                abs(self.claim.value(point) - value)
                <= self.claim.tolerance * max(abs(value), 1e-300)
                for point, value in zip(self.points, self.values, strict=True)
            )
        except Exception:
            return False


def expectations() -> dict[str, list[Expected]]:
    """Return the claims by module of the functions they name, with reference values."""
    found: dict[str, list[Expected]] = defaultdict(list)
    for name in registry.files():
        for claim in registry.load(name).prove().claims:
            points = tuple(claim.points())
            values = tuple(float(claim.expected(point)) for point in points)
            entry = Expected(claim=claim, points=points, values=values)
            for module in {text.partition(":")[0] for text in claim.implements}:
                found[module].append(entry)
    return found


def functions_of(claims: list[Expected], module: str) -> set[str]:
    """Return qualified names of the implementing functions and the private ones they call."""
    names = {
        text.partition(":")[2]
        for entry in claims
        for text in entry.claim.implements
        if text.partition(":")[0] == module
    }
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    bodies = dict(_bodies(tree))
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in bodies:
            continue
        for node in ast.walk(bodies[name]):
            if isinstance(node, ast.Name | ast.Attribute):
                called = node.id if isinstance(node, ast.Name) else node.attr
                owner = name.rpartition(".")[0]
                for candidate in (called, f"{owner}.{called}"):
                    if called.startswith("_") and candidate in bodies and candidate not in names:
                        names.add(candidate)
                        todo.append(candidate)
    return names & set(bodies)


def _bodies(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def mutants(module: str, names: set[str]) -> Iterator[Mutant]:
    """Yield every mutant of the named functions of a module."""
    source = inspect.getsource(importlib.import_module(module))
    count = len(list(_sites(ast.parse(source), names)))
    for number in range(count):
        tree = ast.parse(source)
        function, node, kind = list(_sites(tree, names))[number]
        change = _apply(node, kind)
        yield Mutant(
            module, function, getattr(node, "lineno", 0), change, ast.fix_missing_locations(tree)
        )


def _sites(tree: ast.Module, names: set[str]) -> Iterator[tuple[str, Any, str]]:
    for name, body in _bodies(tree):
        if name not in names:
            continue
        skipped = {
            id(inner) for outer in ast.walk(body) if _is_text(outer) for inner in ast.walk(outer)
        }
        for node in ast.walk(body):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.BinOp) and _is_nudge(node):
                skipped |= {id(node.left), id(node.right)}
            elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
                yield name, node, "operator"
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                yield name, node, "sign"
            elif isinstance(node, ast.Constant) and _is_factor(node.value):
                yield name, node, "constant"


def _is_text(node: ast.AST) -> bool:
    """Whether nothing below is arithmetic: errors, subscripts, annotations, defaults, types."""
    if isinstance(node, ast.Raise | ast.Subscript | ast.arguments | ast.JoinedStr):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in ("axis", "dtype", "ddof", "indexing", "side")
    # Unions of types in a `match` or an isinstance are not sums.
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)


def _is_nudge(node: ast.BinOp) -> bool:
    """Whether one side is a guard, as in ``1.0 - 1e-12``: rounding, not arithmetic."""
    sides = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
    return any(isinstance(value, float) and 0 < abs(value) < GUARD for value in sides)


def _is_factor(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or value == 0:
        return False
    return GUARD < abs(value) < 1 / GUARD and math.isfinite(value)


def _apply(node: Any, kind: str) -> str:
    before = ast.unparse(node)
    if kind == "operator":
        node.op = SWAPS[type(node.op)]()
    elif kind == "sign":
        node.op = ast.UAdd()
    else:
        node.value = node.value + 1 if isinstance(node.value, int) else node.value * 1.25
    return f"{before} -> {ast.unparse(node)}"


def swapped(mutant: Mutant) -> dict[types.FunctionType, types.CodeType]:
    """Put the mutant's code into the living function; return what was there."""
    module = importlib.import_module(mutant.module)
    space: dict[str, Any] = {"__name__": mutant.module, "__package__": module.__package__}
    code = compile(mutant.tree, str(module.__file__), "exec")
    exec(code, space)  # compiled from the project's own source, one operator changed
    changed = _function(space, mutant.function)
    living = _plain(resolve(f"{mutant.module}:{mutant.function}"))
    before = {living: living.__code__}
    living.__code__ = changed.__code__
    return before


def _function(space: dict[str, Any], name: str) -> types.FunctionType:
    owner, _, attribute = name.rpartition(".")
    return _plain(space[owner].__dict__[attribute] if owner else space[attribute])


def _plain(found: Any) -> types.FunctionType:
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found


def run(wanted: list[str]) -> tuple[list[Mutant], list[Mutant]]:
    """Return all mutants, and those that no claim noticed."""
    every, alive = [], []
    for module, claims in sorted(expectations().items()):
        if wanted and not any(part in module for part in wanted):
            continue
        if not all(entry.holds() for entry in claims):
            print(f"{module}: claims do not hold on the code itself; skipped")
            continue
        here, lived = 0, 0
        for mutant in mutants(module, functions_of(claims, module)):
            before = swapped(mutant)
            signal.alarm(LONGEST_S)
            try:
                noticed = not all(entry.holds() for entry in claims)
            finally:
                signal.alarm(0)
                for function, code in before.items():
                    function.__code__ = code
            here += 1
            every.append(mutant)
            if not noticed:
                lived += 1
                alive.append(mutant)
        print(f"{module}: {here - lived} of {here} noticed", flush=True)
    return every, alive


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError("the mutant does not end")


def main() -> None:
    """Print the kill rate and the survivors."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_long)
    every, alive = run(sys.argv[1:])
    for mutant in alive:
        kind = "method" if _in_method(mutant) else "formula"
        place = f"{mutant.module}:{mutant.function} line {mutant.line}"
        print(f"lives ({kind}): {place}: {mutant.change}")
    for kind, wanted in (("formulas", False), ("methods", True)):
        total = sum(_in_method(mutant) is wanted for mutant in every)
        lived = sum(_in_method(mutant) is wanted for mutant in alive)
        rate = 1 - lived / max(total, 1)
        print(f"{kind}: {total - lived} of {total} mutants noticed: {rate:.1%}")


def _in_method(mutant: Mutant) -> bool:
    return f"{mutant.module}:{mutant.function}".startswith(METHODS)


if __name__ == "__main__":
    main()
