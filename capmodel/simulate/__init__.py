"""An independent discrete-event reference: sessions, blocks and steps, one by one.

It shares the step law with the analytic path and nothing else. To run a case:

    from dataclasses import replace
    from capmodel.simulate import published_case, simulate

    case = published_case("kimi-k3-8xB300", concurrency=14)
    print(simulate(case, turns=50_000, seeds=4))
    print(simulate(replace(case, concurrency=16), turns=50_000, seeds=4, start="cold"))

A case of one's own is a `SimulationCase`: a `StepLaw`, a KV budget, `SessionLaws` (lognormal
mixtures of first prompt, new input, output, turns and think time), a concurrency, and optionally
a `Tier`, a `StateRule` (hybrid models), `SubAgents`, several classes of sessions, an open stream
of sessions, a policy for the queue, or frozen contexts. Turns per minute and core: 0.7 to 2.5
million with Numba, about a hundred thousand without.
"""

from .case import SessionLaws, SimulationCase, StateRule, SubAgents, Tier
from .cases import bistable_case, frozen_case, published_case, published_cases
from .result import SimulationResult
from .simulation import simulate

__all__ = [
    "SessionLaws",
    "SimulationCase",
    "SimulationResult",
    "StateRule",
    "SubAgents",
    "Tier",
    "bistable_case",
    "frozen_case",
    "published_case",
    "published_cases",
    "simulate",
]
