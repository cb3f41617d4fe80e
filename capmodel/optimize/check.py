"""Check a certificate: ask the question again, solve its evidence anew, and see that it covers all.

Nothing of the search is trusted: the space is built from the question, every statement is solved
through the pipeline that estimates use, and every point of the space must fall under a statement
that excludes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answer import BEFORE_CLIFF
from ..errors import CapmodelError, SpecError
from ..pipeline import run
from ..scenario import ResolvedScenario, Scenario
from .certificate import SOLVER_TOLERANCE, Question, fingerprint
from .configuration import Configuration
from .evaluation import Evaluator, Rules
from .evidence import Evidence, lower_bound
from .objective import Objective, hourly_usd
from .planner import plan_space
from .slo import parse_slos

# Rates are solved again by the same equations, so they agree to rounding.
SAME = 1e-6
PROBES = 6
SEED = 20260702


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check found.

    Parameters
    ----------
    statements, points, probes : int
        Statements solved anew, points of the space they cover, and random points tried [1].
    failures : tuple of str
        Why the certificate is not accepted; empty where it is.
    """

    statements: int
    points: int
    probes: int
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True where every statement holds and the space is covered."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "ok": self.ok,
            "statements": self.statements,
            "points": self.points,
            "probes": self.probes,
            "failures": list(self.failures),
        }

    def __str__(self) -> str:
        head = (
            f"{'VALID' if self.ok else 'REJECTED'}  {self.statements} statements solved anew, "
            f"{self.points} points covered, {self.probes} random points tried"
        )
        return "\n".join([head, *(f"  {failure}" for failure in self.failures)])


def check(
    item: Mapping[str, Any], scenarios: Sequence[Scenario | ResolvedScenario] | None = None
) -> CheckReport:
    """Return whether a certificate holds.

    Parameters
    ----------
    item : mapping
        A certificate's JSON form, or a whole answer of `optimize` that holds one.
    scenarios : sequence of Scenario, optional
        What was asked about, where the certificate cannot say it in text.

    Raises
    ------
    SpecError
        If the mapping is not a certificate.
    """
    body = item.get("certificate", item)
    try:
        question, resolved = _question(body, scenarios)
        evidence = [Evidence.from_dict(entry) for entry in body["evidence"]]
        checker = _Checker(question, plan_space(resolved, question), body)
        return checker.report(resolved, evidence)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise SpecError(f"not a certificate: {error!r} is missing or malformed.") from error


def _question(
    body: Mapping[str, Any], scenarios: Sequence[Scenario | ResolvedScenario] | None
) -> tuple[Question, list[ResolvedScenario]]:
    asked = body["question"]
    if scenarios is None:
        if asked["scenarios"] is None:
            raise SpecError("the certificate holds no scenario text; give the scenarios to check.")
        scenarios = [Scenario(**fields) for fields in asked["scenarios"]]
    resolved = [s.resolve() if isinstance(s, Scenario) else s for s in scenarios]
    rules = asked["rules"]
    question = Question(
        scenarios=None,
        fingerprint=asked["fingerprint"],
        level=asked["level"],
        objective=Objective(**asked["objective"]),
        rules=Rules(
            slos=parse_slos(rules["slos"]),
            hit_share=rules["hit_share"],
            cliff_margin=rules["cliff_margin"],
        ),
        axes=tuple(asked["axes"]),
        largest_dram_bytes=asked["largest_dram_bytes"],
    )
    return question, resolved


class _Checker:
    """Solves statements anew and collects what is wrong with them."""

    def __init__(self, question: Question, space: Sequence[Configuration], body: Mapping[str, Any]):
        self.question = question
        self.space = space
        self.body = body
        self.failures: list[str] = []
        self.evaluators: dict[int, Evaluator] = {}
        self.rates: dict[tuple[int, int, float], tuple[float, float]] = {}
        self.bound = float(body["lower_bound"])

    def report(
        self, resolved: Sequence[ResolvedScenario], evidence: Sequence[Evidence]
    ) -> CheckReport:
        """Run every check."""
        if fingerprint(resolved) != self.question.fingerprint:
            self.failures.append("the inputs differ from those the certificate was made from")
        if self.question.rules.hit_share not in (0.0, BEFORE_CLIFF):
            self.failures.append(f"an unknown rule: hits at {self.question.rules.hit_share}")
        if [c.label for c in self.space] != self.body["configurations"]:
            self.failures.append("the configurations are not those of the question")
            return CheckReport(statements=0, points=0, probes=0, failures=tuple(self.failures))
        for index, configuration in enumerate(self.space):
            self._refused(index, configuration, evidence)
        for item in evidence:
            self._statement(item)
        points = self._coverage(evidence)
        self._places()
        probes = self._probes()
        return CheckReport(
            statements=len(evidence),
            points=points,
            probes=probes,
            failures=tuple(self.failures),
        )

    def _refused(
        self, index: int, configuration: Configuration, evidence: Sequence[Evidence]
    ) -> None:
        try:
            self.evaluators[index] = Evaluator(
                configuration, self.question.rules, self.question.level
            )
        except CapmodelError:
            return
        if any(e.kind == "refused" and e.configuration == index for e in evidence):
            self.failures.append(f"{configuration} is said to be refused, but it runs")

    def _solve(self, index: int, sessions: int, dram_bytes: float) -> tuple[float, float]:
        """Rate [requests/s] and hit share [1] through the pipeline of estimates."""
        key = (index, sessions, dram_bytes)
        if key not in self.rates:
            scenario = self.space[index].with_dram(dram_bytes)
            try:
                solved = run(scenario, concurrency=sessions, level=self.question.level)
            except CapmodelError:
                self.rates[key] = (0.0, 0.0)
            else:
                self.rates[key] = (solved.requests_per_s, solved.hit_share)
        return self.rates[key]

    def _statement(self, item: Evidence) -> None:
        """Solve one statement anew; a wrong rate, value or verdict is a failure."""
        if item.kind == "refused":
            return
        made = self.evaluators[item.configuration]
        where = f"{item.kind} at C = {item.concurrency}, DRAM {item.dram_bytes / 1e9:.0f} GB"
        if item.kind == "broken":
            point = made.point(item.concurrency, item.dram_bytes)
            if not point.broken:
                self.failures.append(f"{where}: it keeps every rule")
            return
        rate = self._rate_of(item, made)
        if abs(rate - item.requests_per_s) > SAME * max(rate, 1e-12):
            self.failures.append(
                f"{where}: the rate is {rate:.6g}/s, not {item.requests_per_s:.6g}/s"
            )
        if item.kind == "point":
            self._point(item, made, where)
            return
        floor = lower_bound(self.question.objective, made.configuration, item.dram_bytes, rate)
        stated = math.inf if item.value is None else item.value
        if floor < self.bound * (1.0 - SAME) or stated > floor * (1.0 + SAME):
            self.failures.append(f"{where}: excludes down to {floor:.6g} only")

    def _rate_of(self, item: Evidence, made: Evaluator) -> float:
        if item.kind == "rate":
            return made.rate_bound(item.concurrency, item.up_to)
        if item.kind != "peak":
            size = item.dram_bytes if item.kind == "point" else item.dram_up_to_bytes
            return self._solve(item.configuration, item.concurrency, size)[0]
        near, _ = self._solve(item.configuration, item.witness, item.dram_up_to_bytes)
        other, _ = self._solve(item.configuration, item.farther, item.dram_up_to_bytes)
        below = item.farther < item.witness <= item.concurrency
        above = item.farther > item.witness >= item.up_to
        if not (other > near and (below or above)):
            self.failures.append(
                f"peak at C = {item.witness}: its two rates do not show where the peak is"
            )
        return near

    def _point(self, item: Evidence, made: Evaluator, where: str) -> None:
        point = made.point(item.concurrency, item.dram_bytes)
        hourly = hourly_usd(made.scenario, item.dram_bytes)
        goal = self.question.objective
        value = None
        if not goal.over_budget(hourly, point.requests_per_s):
            value = goal.value(made.scenario, hourly, point.requests_per_s, point.hit_rate)
        if point.broken:
            self.failures.append(f"{where}: it breaks {', '.join(point.broken)}")
        if (value is None) != (item.value is None):
            self.failures.append(f"{where}: its verdict on the budget is wrong")
        elif value is not None and item.value is not None:
            if abs(value - item.value) > SAME * value:
                self.failures.append(f"{where}: its value is {value:.6g}, not {item.value:.6g}")
            if value < self.bound * (1.0 - SAME):
                self.failures.append(f"{where}: it is better than the bound")

    def _coverage(self, evidence: Sequence[Evidence]) -> int:
        """Every point of the space must fall under a statement; return how many there are."""
        total = 0
        for index, made in self.evaluators.items():
            sessions = np.arange(made.ranks, made.largest_concurrency + 1, made.ranks)
            sizes = np.asarray(made.configuration.dram_sizes_bytes)
            open_points = np.ones((len(sessions), len(sizes)), dtype=bool)
            for item in evidence:
                if item.configuration == index:
                    open_points &= ~item.covers_grid(sessions, sizes)
            total += open_points.size
            if open_points.any():
                row, column = np.argwhere(open_points)[0]
                self.failures.append(
                    f"{int(open_points.sum())} points of {made.configuration} are not covered, "
                    f"such as C = {sessions[row]} with {sizes[column] / 1e9:.0f} GB"
                )
        return total

    def _places(self) -> None:
        """The optimum and the plan must have the values that the certificate states."""
        for name, stated in (("optimum", "optimum"), ("plan", "plan_value")):
            index, sessions, dram = self.body[f"{name}_at"]
            made = self.evaluators.get(index)
            if made is None:
                self.failures.append(f"the {name} is in a configuration that cannot run")
                continue
            point = made.point(int(sessions), float(dram))
            rate, _ = self._solve(index, int(sessions), float(dram))
            value = self.question.objective.value(
                made.scenario, hourly_usd(made.scenario, dram), max(rate, 1e-300), point.hit_rate
            )
            if point.broken:
                self.failures.append(f"the {name} breaks {', '.join(point.broken)}")
            if abs(value - float(self.body[stated])) > SAME * value:
                self.failures.append(
                    f"the {name} is worth {value:.6g}, not {float(self.body[stated]):.6g}"
                )
        gap = float(self.body["optimum"]) / self.bound - 1.0
        if abs(gap - float(self.body["relative_gap"])) > SAME or gap < -SAME:
            self.failures.append(f"the gap is {gap:.3g}, not {self.body['relative_gap']:.3g}")

    def _probes(self) -> int:
        """Try random points near the optimum: none may keep the rules and beat the bound."""
        index, best, _ = self.body["optimum_at"]
        made = self.evaluators.get(index)
        if made is None:
            return 0
        rng = np.random.default_rng(SEED)
        most = min(max(2 * best // made.ranks, 2), made.largest_concurrency // made.ranks)
        for _ in range(PROBES):
            sessions = int(rng.integers(1, most + 1)) * made.ranks
            dram = float(rng.choice(np.asarray(made.configuration.dram_sizes_bytes)))
            point = made.point(sessions, dram)
            if point.broken:
                continue
            hourly = hourly_usd(made.scenario, dram)
            goal = self.question.objective
            if goal.over_budget(hourly, point.requests_per_s):
                continue
            value = goal.value(made.scenario, hourly, point.requests_per_s, point.hit_rate)
            if value < self.bound * (1.0 - SOLVER_TOLERANCE):
                self.failures.append(f"C = {sessions} with {dram / 1e9:.0f} GB beats the bound")
        return PROBES
