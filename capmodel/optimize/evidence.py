"""Evidence: short statements that together leave no better plan, each easy to check again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .configuration import Configuration
from .evaluation import PAST_PEAK, Evaluated, Evaluator, Rules
from .objective import Objective, hourly_usd

KINDS = ("point", "broken", "rate", "peak", "single", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A statement about some points (C, DRAM) of one configuration.

    Parameters
    ----------
    kind : str
        ``point``: this very point has this value. ``broken``: it breaks a rule, and so do all
        with more sessions and less DRAM. ``rate``: no point with `concurrency` to `up_to` sessions
        and at least this DRAM is better than `value`, by the lossless rate. ``peak``: the same
        for DRAM up to `dram_up_to_bytes`, by two rates at that size on one side of its peak over
        sessions, the one at `witness` sessions and the one farther out. ``single``: no point
        at this concurrency with DRAM from `dram_bytes` to `dram_up_to_bytes` is better than
        `value`, by the rate at the upper size. ``refused``: the engine cannot run it.
    configuration : int
        Index into the certificate's configurations.
    concurrency, up_to : int
        Live sessions [1].
    dram_bytes, dram_up_to_bytes : float
        Tier per node [bytes].
    witness, farther : int
        Sessions of the two rates of a ``peak`` [1].
    requests_per_s : float
        Rate the statement rests on [requests/s].
    value : float or None
        Objective, or a lower bound of it; None where the budget alone excludes the points.
    broken : tuple of str
        Rules broken, or why the configuration is refused.
    """

    kind: str
    configuration: int
    concurrency: int = 0
    up_to: int = 0
    dram_bytes: float = 0.0
    dram_up_to_bytes: float = 0.0
    witness: int = 0
    farther: int = 0
    requests_per_s: float = 0.0
    value: float | None = None
    broken: tuple[str, ...] = ()

    def covers_grid(
        self, sessions: npt.NDArray[np.int64], sizes: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.bool_]:
        """Which points of a grid the statement is about, shape (sessions, sizes)."""
        if self.kind == "refused":
            rows, columns = np.ones(len(sessions), bool), np.ones(len(sizes), bool)
        elif self.kind == "broken":
            rows, columns = sessions >= self.concurrency, sizes <= self.dram_bytes
        else:
            rows = (sessions >= self.concurrency) & (sessions <= self.up_to)
            columns = sizes >= self.dram_bytes
            if self.kind != "rate":
                columns &= sizes <= self.dram_up_to_bytes
        grid: npt.NDArray[np.bool_] = rows[:, None] & columns[None, :]
        return grid

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, item: dict[str, Any]) -> Evidence:
        """Return the statement of a JSON form."""
        return cls(**{**item, "broken": tuple(item.get("broken", ()))})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def lower_bound(
    objective: Objective, configuration: Configuration, dram_bytes: float, requests_per_s: float
) -> float:
    """Value that no point reaches whose rate is at most this and whose tier is at least this.

    Infinite where even that would break the budget. The hit rate is taken at 0: fewer hits never
    raise the value of `Objective`.
    """
    if requests_per_s <= 0:
        return math.inf
    scenario = configuration.scenario
    hourly = hourly_usd(scenario, dram_bytes)
    if objective.over_budget(hourly, requests_per_s):
        return math.inf
    return objective.value(scenario, hourly, requests_per_s, 0.0)


def point_value(
    objective: Objective, configuration: Configuration, evaluated: Evaluated
) -> float | None:
    """Value of a solved point, None where it is over budget."""
    scenario = configuration.scenario
    hourly = hourly_usd(scenario, evaluated.dram_bytes)
    if objective.over_budget(hourly, evaluated.requests_per_s):
        return None
    return objective.value(scenario, hourly, evaluated.requests_per_s, evaluated.hit_rate)


# What the bounds assume, and the pairs of points that must agree: (smaller, larger, figure).
Figure = Callable[[Evaluated], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Monotonicity:
    """An assumption of the proof, checked on every pair of evaluated points it is about.

    Parameters
    ----------
    statement : str
        What must hold.
    pairs : int
        Pairs compared [1].
    worst : float
        Largest violation, relative for rates and absolute for shares of hits; 0 for none [1].
    """

    statement: str
    pairs: int
    worst: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"statement": self.statement, "pairs": self.pairs, "worst": self.worst}


def monotonicities(evaluators: list[Evaluator]) -> list[Monotonicity]:
    """Return the assumptions with their worst violation over all evaluated points."""
    rules = evaluators[0].rules if evaluators else Rules()
    checks: list[tuple[str, str, Figure, int]] = [
        ("the rate does not fall with DRAM", "dram", lambda e: e.requests_per_s, 1),
    ]
    if rules.hit_share > 0:
        checks += [
            ("hits do not rise with sessions", "sessions", lambda e: e.hit_share, -1),
            ("hits do not fall with DRAM", "dram", lambda e: e.hit_share, 1),
        ]
    for slo in rules.slos:
        # A bound met with more sessions must be met with fewer: only broken rules are compared.
        breaks = _breaks(slo.key)
        checks.append((f"{slo.key} stays broken with more sessions", "sessions", breaks, 1))
        checks.append((f"{slo.key} stays broken with less DRAM", "dram", breaks, -1))
    found = []
    for statement, axis, figure, sign in checks:
        pairs, worst = 0, 0.0
        for evaluator in evaluators:
            points = [e for e in evaluator.evaluated.values() if e.run is not None]
            for one, other in _neighbours(points, axis):
                low, high = figure(one), figure(other)
                pairs += 1
                # Shares of hits differ by what they are, rates by what they are of.
                scale = 1.0 if "hits" in statement else max(abs(low), abs(high), 1e-12)
                worst = max(worst, sign * (low - high) / scale)
        found.append(Monotonicity(statement=statement, pairs=pairs, worst=worst))
    if rules.hit_share > 0:
        found.append(_single_peak(evaluators))
    return [*found, *_rate_checks(evaluators)]


def _single_peak(evaluators: list[Evaluator]) -> Monotonicity:
    """Before the cliff, the rate at one DRAM size has a single peak over sessions."""
    triples, worst = 0, 0.0
    for evaluator in evaluators:
        lines: dict[float, list[tuple[int, float]]] = {}
        for point in evaluator.evaluated.values():
            if not point.broken:
                line = lines.setdefault(point.dram_bytes, [])
                line.append((point.concurrency, point.requests_per_s))
        for line in lines.values():
            rates = [rate for _, rate in sorted(line)]
            for at in range(1, len(rates) - 1):
                triples += 1
                sides = min(max(rates[:at]), max(rates[at + 1 :]))
                worst = max(worst, sides / rates[at] - 1.0)
    return Monotonicity(
        statement="the rate has one peak over sessions before the cliff", pairs=triples, worst=worst
    )


def _rate_checks(evaluators: list[Evaluator]) -> list[Monotonicity]:
    """The assumptions of `Evaluator.rate_bound`, on every value it has computed."""
    pairs, worst, falls = 0, 0.0, 0.0
    for evaluator in evaluators:
        for evaluated in evaluator.evaluated.values():
            if evaluated.run is not None:
                pairs += 1
                most = evaluator.lossless_rate(evaluated.concurrency)
                worst = max(worst, evaluated.requests_per_s / most - 1.0)
        lines: dict[int, list[tuple[int, float]]] = {}
        for (sessions, fewest), rate in evaluator.lossless_rates.items():
            lines.setdefault(fewest, []).append((sessions, rate))
        for line in lines.values():
            rates = [rate for _, rate in sorted(line) if rate > 0]
            for at, rate in enumerate(rates):
                falls = max(falls, rate / min(rates[at:]) - 1.0)
    beyond = max(falls - PAST_PEAK, 0.0)
    return [
        Monotonicity(statement="no rate exceeds the lossless one", pairs=pairs, worst=worst),
        Monotonicity(
            statement=f"the lossless rate falls by at most {PAST_PEAK:.0%} past its peak",
            pairs=sum(len(e.lossless_rates) for e in evaluators),
            worst=beyond,
        ),
    ]


def _breaks(key: str) -> Figure:
    return lambda evaluated: float(any(b.startswith(f"{key} =") for b in evaluated.broken))


def _neighbours(points: list[Evaluated], axis: str) -> list[tuple[Evaluated, Evaluated]]:
    """Pairs next to each other along one axis, the other held."""
    lines: dict[float, list[Evaluated]] = {}
    for point in points:
        held = point.dram_bytes if axis == "sessions" else float(point.concurrency)
        lines.setdefault(held, []).append(point)
    pairs: list[tuple[Evaluated, Evaluated]] = []
    for line in lines.values():
        line.sort(key=lambda e: e.concurrency if axis == "sessions" else e.dram_bytes)
        pairs.extend(pairwise(line))
    return pairs
