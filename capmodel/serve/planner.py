"""Answers for the page: curves and a first screen, solved once per scenario and then remembered."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

from .. import catalog
from ..answer import estimate
from ..pipeline import Run
from ..report.command_line import command_line
from ..report.first_screen import headline, screen_rows
from ..scenario import Scenario, given_values
from ..solver import Solver
from .question import Question

LEVEL = "closed"
POINTS = 13
REMEMBERED = 64


@lru_cache(maxsize=REMEMBERED)
def _solver(scenario: Scenario) -> Solver:
    return Solver(scenario, LEVEL)


def grid(concurrency: int) -> list[int]:
    """Return concurrencies from 1 to twice the point, rounded up to a power of two.

    The grid stays the same over a range of points, so that a drag meets what is solved already.
    """
    last = 16
    while last < 1.5 * concurrency:
        last *= 2
    return sorted({max(round(last * step / (POINTS - 1)), 1) for step in range(POINTS)})


def curve(question: Question) -> dict[str, Any]:
    """Return the rows around a point and the point itself, at the question's prices."""
    solver = _solver(question.scenario)
    priced = question.priced_scenario.resolve()
    places = sorted({*grid(question.concurrency), question.concurrency})
    rows = [_row(_priced(solver(c), priced)) for c in places]
    return {
        "concurrency": question.concurrency,
        "ceiling": priced.workload.theoretical_hit_rate,
        "rows": rows,
    }


def _priced(run: Run, priced: Any) -> Run:
    scenario = dataclasses.replace(
        run.scenario,
        tariff=priced.tariff,
        tariff_basis=priced.tariff_basis,
        gpu_hour_usd=priced.gpu_hour_usd,
        gpu_hour_basis=priced.gpu_hour_basis,
    )
    return dataclasses.replace(run, scenario=scenario)


def _row(run: Run) -> dict[str, Any]:
    cost = run.cost
    return {
        "concurrency": run.concurrency,
        "output_tokens_per_s": run.output_tokens_per_s,
        "hit_rate": run.point.headline.hit_rate,
        "usd_per_session": cost.usd_per_session,
        "usd_per_mtok": cost.usd_per_mtok_total,
        "margin": cost.margin[cost.bill_cached] if cost.margin else None,
    }


@lru_cache(maxsize=REMEMBERED)
def screen(question: Question) -> dict[str, Any]:
    """Return the first screen of the point, the cliff, and the command for the same answer."""
    scenario = question.priced_scenario
    answer = estimate(scenario, question.concurrency, level=LEVEL)
    given = {**given_values(scenario), "concurrency": question.concurrency, "level": LEVEL}
    return {
        "headline": headline(answer),
        "screen": screen_rows(answer),
        "cliff": dataclasses.asdict(answer.cliff),
        "regime": answer.regime,
        "command": command_line("estimate", given),
    }


def choices() -> dict[str, Any]:
    """Return the names that the controls offer."""
    return {
        "models": sorted(catalog.names("models")),
        "accelerators": sorted(catalog.names("accelerators")),
        "workloads": sorted(catalog.names("workloads")),
    }
