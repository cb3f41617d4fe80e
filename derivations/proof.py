"""What a derivation is: a statement, assumptions, checked steps, and claims about code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from .claim import Claim

Expr = Any


@dataclass(frozen=True, slots=True)
class Check:
    """One checked line: what it says, whether SymPy agrees, and the line as LaTeX."""

    claim: str
    ok: bool
    latex: str = ""


@dataclass(slots=True)
class Steps:
    """Collects the steps of one proof; every method decides one symbolic statement."""

    checks: list[Check] = field(default_factory=list)

    def equal(self, text: str, left: Expr, right: Expr) -> None:
        """Assert an identity between two expressions that were reached in different ways."""
        left, right = sp.sympify(left), sp.sympify(right)
        ok = is_zero(left - right)
        shown = [sp.latex(left), sp.latex(right)]
        self._add(text, ok, " = ".join(dict.fromkeys(shown)))

    def zero(self, text: str, expression: Expr) -> None:
        """Assert that an expression vanishes identically."""
        expression = sp.sympify(expression)
        self._add(text, is_zero(expression), f"{sp.latex(expression)} = 0")

    def solves(self, text: str, equation: Expr, symbol: Expr, root: Expr) -> None:
        """Assert that `root` solves `equation = 0`, which does not hold for every value."""
        ok = not is_zero(equation) and is_zero(equation.subs(symbol, root))
        shown = f"{sp.latex(symbol)} = {sp.latex(root)}"
        self._add(text, ok, rf"{sp.latex(equation)} = 0 \iff {shown}")

    def positive(self, text: str, expression: Expr) -> None:
        """Assert that an expression is positive under the assumptions of its symbols."""
        self._add(text, is_positive(expression), f"{sp.latex(sp.sympify(expression))} > 0")

    def negative(self, text: str, expression: Expr) -> None:
        """Assert that an expression is negative under the assumptions of its symbols."""
        self._add(text, is_positive(-expression), f"{sp.latex(sp.sympify(expression))} < 0")

    def rises(self, text: str, expression: Expr, symbol: Expr) -> None:
        """Assert a positive derivative."""
        slope = sp.diff(expression, symbol)
        latex = rf"\partial_{{{sp.latex(symbol)}}} \left({sp.latex(expression)}\right) > 0"
        self._add(text, is_positive(slope), latex)

    def falls(self, text: str, expression: Expr, symbol: Expr) -> None:
        """Assert a negative derivative."""
        slope = sp.diff(expression, symbol)
        latex = rf"\partial_{{{sp.latex(symbol)}}} \left({sp.latex(expression)}\right) < 0"
        self._add(text, is_positive(-slope), latex)

    def limit(self, text: str, expression: Expr, symbol: Expr, point: Expr, value: Expr) -> None:
        """Assert a limit, from above where the side matters."""
        found = sp.limit(expression, symbol, point)
        arrow = rf"\lim_{{{sp.latex(symbol)} \to {sp.latex(point)}}} {sp.latex(expression)}"
        ok = found == value or is_zero(found - value)
        self._add(text, ok, f"{arrow} = {sp.latex(value)}")

    def is_true(self, text: str, relation: Expr) -> None:
        """Assert a relation that SymPy decides exactly, such as one between integers."""
        decided = sp.simplify(relation)
        self._add(text, decided is sp.true or decided is True, sp.latex(relation))

    def _add(self, text: str, ok: bool, latex: str) -> None:
        self.checks.append(Check(claim=text, ok=bool(ok), latex=latex))


def is_zero(expression: Expr) -> bool:
    """Return whether an expression simplifies to zero; cheap forms are tried first."""
    if expression == 0:
        return True
    for form in (sp.expand, sp.together, sp.factor, sp.simplify, _through_exponentials):
        expression = form(expression)
        if expression == 0:
            return True
    return False


def _through_exponentials(expression: Expr) -> Expr:
    return sp.simplify(sp.expand_log(sp.powdenest(expression.rewrite(sp.exp), force=True)))


def is_positive(expression: Expr) -> bool:
    """Return whether the assumptions prove an expression positive, in some factored form."""
    expression = sp.sympify(expression)
    for form in (lambda e: e, sp.factor, sp.simplify, lambda e: sp.factor(sp.simplify(e))):
        candidate = form(expression)
        if candidate.is_positive:
            return True
        top, bottom = sp.fraction(sp.together(candidate))
        if sp.expand(top).is_positive and sp.factor(bottom).is_positive:
            return True
        if sp.expand(-top).is_positive and sp.factor(-bottom).is_positive:
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """A derivation after its proof ran: the steps, and the claims it ends in."""

    checks: tuple[Check, ...]
    claims: tuple[Claim, ...]

    @property
    def ok(self) -> bool:
        """Whether every step holds."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """One result.

    Parameters
    ----------
    name : str
        Name of the file, unique over the package.
    title : str
        First line of the file: the result in words.
    statement : str
        The result in LaTeX.
    assumptions : tuple of str
        What makes it exact.
    depends_on : tuple of str
        Results whose last lines it uses.
    module : str
        Module of the proof.
    proof : callable
        Runs the steps and yields the claims.
    """

    name: str
    title: str
    statement: str
    assumptions: tuple[str, ...]
    depends_on: tuple[str, ...]
    module: str
    proof: Callable[[Steps], Iterator[Claim]]

    def prove(self) -> Proved:
        """Run the proof now."""
        steps = Steps()
        claims = tuple(self.proof(steps))
        return Proved(checks=tuple(steps.checks), claims=claims)

    def source(self) -> str:
        """Return the text of the proof."""
        return inspect.getsource(sys.modules[self.module])


def derivation(
    *, statement: str, assumptions: Iterable[str] = (), depends_on: Iterable[str] = ()
) -> Callable[[Callable[[Steps], Iterator[Claim]]], Derivation]:
    """Return a decorator that makes a proof function the derivation of its file."""

    def wrap(proof: Callable[[Steps], Iterator[Claim]]) -> Derivation:
        module = sys.modules[proof.__module__]
        return Derivation(
            name=proof.__module__.rpartition(".")[2],
            title=(module.__doc__ or "").strip().splitlines()[0],
            statement=statement,
            assumptions=tuple(assumptions),
            depends_on=tuple(depends_on),
            module=proof.__module__,
            proof=proof,
        )

    return wrap
