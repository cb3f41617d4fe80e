"""One scenario solved at many points: the engine's law is built once, a point is solved once."""

from __future__ import annotations

from .pipeline import Run, run, with_workload
from .scenario import ResolvedScenario, Scenario
from .service.step_law import StepLaw


class Solver:
    """Solve a scenario by concurrency and workload means, remembering what was solved.

    Parameters
    ----------
    scenario : Scenario or ResolvedScenario
        What is given.
    level : {"closed", "fast", "exact"}
        Queue model.
    """

    def __init__(self, scenario: Scenario | ResolvedScenario, level: str = "fast") -> None:
        self.resolved = scenario.resolve() if isinstance(scenario, Scenario) else scenario
        self.level = level
        self._law: StepLaw | None = None
        self._known: dict[tuple[object, ...], Run] = {}

    def __call__(self, concurrency: int, **workload_means: float) -> Run:
        """Return the run at a concurrency, with some workload means replaced."""
        key = (concurrency, *sorted(workload_means.items()))
        if key not in self._known:
            changed = self.resolved
            if workload_means:
                changed = with_workload(changed, **workload_means)
            solved = run(changed, concurrency=concurrency, level=self.level, law=self._law)
            self._law = solved.law
            self._known[key] = solved
        return self._known[key]

    def hit_share(self, concurrency: int, **workload_means: float) -> float:
        """Overall hit rate as a share of the theoretical one; 1 where nothing is reused [1]."""
        if self.resolved.workload.theoretical_hit_rate <= 0:
            return 1.0  # without a point to solve
        return self(concurrency, **workload_means).hit_share
