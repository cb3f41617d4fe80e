"""How often a plan still holds, and what it costs, over the evidence intervals of the workload."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pipeline import with_workload
from .configuration import Configuration
from .evaluation import Evaluator
from .evidence import point_value

if TYPE_CHECKING:
    from .plan import Plan

SAMPLES = 16
SEED = 20260701


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """A plan over stratified draws from the workload's evidence intervals, taken independent.

    Parameters
    ----------
    samples : int
        Draws [1].
    holds : float
        Share in which the plan keeps every rule [1].
    value : tuple of (low, median, high)
        Objective over the draws, smallest, middle and largest.
    runner_up_better : float or None
        Share in which the runner-up keeps every rule and the plan does not, or costs less [1].
    breaks : dict of str to float
        Share of draws that break each rule [1].
    inputs : dict of str to (low, high)
        The intervals.
    """

    samples: int
    holds: float
    value: tuple[float, float, float] | None
    runner_up_better: float | None
    breaks: dict[str, float]
    inputs: dict[str, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "samples": self.samples,
            "holds": self.holds,
            "value": None if self.value is None else list(self.value),
            "runner_up_better": self.runner_up_better,
            "breaks": self.breaks,
            "inputs": {name: list(span) for name, span in self.inputs.items()},
        }


def robustness(plan: Plan, samples: int = SAMPLES) -> Robustness:
    """Return how a plan does over a Latin hypercube of the workload's intervals."""
    workload = plan.configuration.scenario.workload
    spans = {name: span for name, span in workload.intervals.items() if span[1] > span[0]}
    if not spans:
        whole = (plan.found.value,) * 3
        return Robustness(
            samples=1, holds=1.0, value=whole, runner_up_better=None, breaks={}, inputs={}
        )
    rng = np.random.default_rng(SEED)
    strata = np.stack([rng.permutation(samples) for _ in spans])
    shares = (strata + rng.random((len(spans), samples))) / samples
    held, better, values, broken = 0, 0, [], Counter[str]()
    for column in shares.T:
        drawn = {
            name: low + (high - low) * float(share)
            for (name, (low, high)), share in zip(spans.items(), column, strict=True)
        }
        point, value = _under(plan, drawn, plan.configuration, plan.concurrency, plan.dram_bytes)
        held += not point
        broken.update({text.split(" ", 1)[0] for text in point})
        if value is not None:
            values.append(value)
        if plan.runner_up is not None:
            other, at, _ = plan.runner_up
            faults, rival = _under(plan, drawn, other, at.concurrency, at.dram_bytes)
            if rival is not None and not faults:
                better += bool(point) or value is None or rival < value
    values.sort()
    return Robustness(
        samples=samples,
        holds=held / samples,
        value=(values[0], values[len(values) // 2], values[-1]) if values else None,
        runner_up_better=None if plan.runner_up is None else better / samples,
        breaks={name: count / samples for name, count in sorted(broken.items())},
        inputs=spans,
    )


def _under(
    plan: Plan,
    drawn: dict[str, float],
    configuration: Configuration,
    concurrency: int,
    dram_bytes: float,
) -> tuple[tuple[str, ...], float | None]:
    """Rules broken and value of a decision under drawn workload means."""
    moved = replace(configuration, scenario=with_workload(configuration.scenario, **drawn))
    evaluator = Evaluator(moved, plan.question.rules, plan.question.level)
    point = evaluator.point(concurrency, dram_bytes)
    if point.run is None:
        return point.broken, None
    return point.broken, point_value(plan.question.objective, moved, point)
