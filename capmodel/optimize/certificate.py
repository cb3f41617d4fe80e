"""The certificate: what was asked, what was found, and the evidence that nothing is better."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from .._version import __version__
from ..scenario import ResolvedScenario, Scenario
from .configuration import Configuration
from .evaluation import Rules
from .evidence import Evidence, Monotonicity
from .objective import Objective

# Relative error up to which a solved figure may break an assumption: the fixed points' residual.
SOLVER_TOLERANCE = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked, in a form that can be asked again.

    Parameters
    ----------
    scenarios : tuple of dict, or None
        Fields of every scenario that differ from their defaults; None where a scenario holds
        objects, which a checker then has to be given.
    fingerprint : str
        Digest of the resolved inputs.
    level : str
        Queue model.
    objective : Objective
        What to minimise.
    rules : Rules
        What to keep.
    axes : tuple of str
        What else was chosen.
    largest_dram_bytes : float or None
        DRAM per node that was allowed, None for the usual share of the node's [bytes].
    """

    scenarios: tuple[dict[str, Any], ...] | None
    fingerprint: str
    level: str
    objective: Objective
    rules: Rules
    axes: tuple[str, ...]
    largest_dram_bytes: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "scenarios": None if self.scenarios is None else list(self.scenarios),
            "fingerprint": self.fingerprint,
            "level": self.level,
            "objective": asdict(self.objective),
            "rules": {
                "slos": [f"{slo.key}={slo.limit!r}" for slo in self.rules.slos],
                "hit_share": self.rules.hit_share,
                "cliff_margin": self.rules.cliff_margin,
            },
            "axes": list(self.axes),
            "largest_dram_bytes": self.largest_dram_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A proof that a re-run of a few points can check.

    Parameters
    ----------
    question : Question
        What was asked.
    configurations : tuple of Configuration
        The space, with sessions up to `largest_concurrency` of each.
    largest_concurrency : tuple of int
        By configuration, 0 where it was refused [1].
    evidence : tuple of Evidence
        Statements that cover the space.
    optimum, lower_bound : float
        Best value and what no plan falls under, in the objective's unit.
    optimum_at : tuple of (configuration, sessions, DRAM bytes)
        Where the optimum is.
    plan_value : float
        Value of the plan, at most `accepted_loss` worse than the optimum.
    accepted_loss : float
        What was given up for less DRAM that costs nothing [1].
    plan_at : tuple of (configuration, sessions, DRAM bytes)
        The plan.
    smaller_dram : tuple of Evidence
        Statements that the next smaller DRAM size loses more than is accepted.
    monotonicities : tuple of Monotonicity
        Assumptions, with their worst violation over all evaluated points.
    evaluated : int
        Points solved [1].
    usd_per_mtok_per_value : float or None
        Turns a value into USD per 1e6 tokens where the objective is money.
    """

    question: Question
    configurations: tuple[Configuration, ...]
    largest_concurrency: tuple[int, ...]
    evidence: tuple[Evidence, ...]
    optimum: float
    lower_bound: float
    optimum_at: tuple[int, int, float]
    plan_value: float
    accepted_loss: float
    plan_at: tuple[int, int, float]
    smaller_dram: tuple[Evidence, ...]
    monotonicities: tuple[Monotonicity, ...]
    evaluated: int
    usd_per_mtok_per_value: float | None

    @property
    def relative_gap(self) -> float:
        """Optimum over lower bound, less one [1]."""
        return self.optimum / self.lower_bound - 1.0

    @property
    def assumptions_hold(self) -> bool:
        """True where no evaluated point contradicts an assumption beyond the solver's error."""
        return all(m.worst <= SOLVER_TOLERANCE for m in self.monotonicities)

    @property
    def method(self) -> str:
        """How the bound was proved, in a sentence."""
        points = sum(
            most * len(configuration.dram_sizes_bytes)
            for configuration, most in zip(
                self.configurations, self.largest_concurrency, strict=True
            )
        )
        fitting = sum(most > 0 for most in self.largest_concurrency)
        whole = "complete enumeration" if self.relative_gap == 0.0 else "search"
        text = (
            f"{whole} by intervals at level {self.question.level}: "
            f"{self.evaluated} of {points} points solved over {fitting} configurations "
            f"({len(self.configurations) - fitting} refused), all others excluded by "
            f"{len(self.evidence)} checked statements"
        )
        if not self.assumptions_hold:
            worst = max(self.monotonicities, key=lambda m: m.worst)
            text += (
                f"; but {worst.statement!r} fails by {worst.worst:.1%} on a solved point, so the "
                "bound is the lossless rate alone"
            )
        elif self.relative_gap > 0.0:
            text += "; it stopped short, and the gap is what the open ranges could still hold"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, complete enough for `check`."""
        money = self.usd_per_mtok_per_value
        return {
            "capmodel": __version__,
            "lower_bound_usd_per_mtok": None if money is None else self.lower_bound * money,
            "lower_bound": self.lower_bound,
            "optimum": self.optimum,
            "optimum_at": list(self.optimum_at),
            "relative_gap": self.relative_gap,
            "plan_value": self.plan_value,
            "plan_at": list(self.plan_at),
            "accepted_loss": self.accepted_loss,
            "method": self.method,
            "evaluated": self.evaluated,
            "level": self.question.level,
            "question": self.question.to_dict(),
            "configurations": [c.label for c in self.configurations],
            "dram_sizes_bytes": [list(c.dram_sizes_bytes) for c in self.configurations],
            "largest_concurrency": list(self.largest_concurrency),
            "evidence": [e.to_dict() for e in self.evidence],
            "smaller_dram": [e.to_dict() for e in self.smaller_dram],
            "monotonicities": [m.to_dict() for m in self.monotonicities],
            "assumptions_hold": self.assumptions_hold,
        }


def scenario_fields(
    scenarios: Sequence[Scenario | ResolvedScenario],
) -> tuple[dict[str, Any], ...] | None:
    """Return what tells each scenario from a default one, None where some hold objects."""
    items = []
    for scenario in scenarios:
        if not isinstance(scenario, Scenario):
            return None
        item = {}
        for field in fields(scenario):
            value = getattr(scenario, field.name)
            if value != field.default:
                if not isinstance(value, str | int | float | bool):
                    return None
                item[field.name] = value
        items.append(item)
    return tuple(items)


def fingerprint(scenarios: Sequence[ResolvedScenario]) -> str:
    """Return a digest of everything the answers depend on."""
    return hashlib.sha256(repr(tuple(scenarios)).encode()).hexdigest()
