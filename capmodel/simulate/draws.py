"""Random input of a run, drawn beforehand: the same seed gives the same sessions everywhere."""

from __future__ import annotations

import numpy as np

from ..spec.distributions import LognormalMixture
from .case import SessionLaws, SimulationCase
from .state import Draws, FloatArray, IntArray


def sample(law: LognormalMixture, size: int, rng: np.random.Generator) -> FloatArray:
    """Return independent draws of a mixture, in the unit of the variable."""
    part = rng.choice(len(law.weights), size=size, p=np.asarray(law.weights))
    medians = np.asarray(law.medians)[part]
    sigmas = np.asarray(law.sigmas)[part]
    values = medians * np.exp(sigmas * rng.standard_normal(size))
    return np.asarray(np.minimum(values, law.cap))


def whole(law: LognormalMixture, size: int, rng: np.random.Generator) -> IntArray:
    """Return draws rounded to whole numbers of at least 1."""
    return np.maximum(np.rint(sample(law, size, rng)), 1.0).astype(np.int64)


def kinds(case: SimulationCase) -> list[SessionLaws]:
    """Return the laws of all classes: those of sessions first, then those of their sub-agents."""
    sessions = [laws for _, laws in case.classes()]
    return sessions + [laws.agents.laws for laws in sessions if laws.agents is not None]


def run_draws(case: SimulationCase, turns: int, rng: np.random.Generator) -> Draws:
    """Return the random input of a run of `turns` turns."""
    size = turns + 2 * case.concurrency
    classes = kinds(case)
    sessions = len(case.classes())
    agent_kind = np.zeros(len(classes), dtype=np.int64)
    with_agents = [number for number in range(sessions) if classes[number].agents is not None]
    agent_kind[with_agents] = np.arange(sessions, len(classes))
    # Without prefix caching the shared prefix is computed like the rest of a first prompt.
    extra = 0 if case.prefix_caching else case.shared_prefix_tokens
    gaps_s = np.full(1, np.inf)
    if case.session_arrivals_per_s > 0:
        gaps_s = rng.exponential(1.0 / case.session_arrivals_per_s, size)
    branch = np.zeros(size, dtype=np.int64)
    if case.branches > 1:
        branch = rng.integers(0, case.branches, size)
    return Draws(
        new_tokens=np.stack([whole(laws.new_tokens, size, rng) for laws in classes]),
        output_tokens=np.stack([whole(laws.output_tokens, size, rng) for laws in classes]),
        think_s=np.stack([sample(laws.think_time, size, rng) for laws in classes]),
        reset_tokens=np.stack([_resets(laws, size, rng) for laws in classes]),
        reset_kept_tokens=np.asarray([laws.reset_kept_tokens for laws in classes], dtype=np.int64),
        first_tokens=np.stack([whole(laws.first_tokens, size, rng) + extra for laws in classes]),
        turns=np.stack([whole(laws.turns, size, rng) for laws in classes]),
        branch=branch,
        agents=np.stack([_agents(laws, size, rng) for laws in classes]),
        agent_kind=agent_kind,
        arrival_gap_s=gaps_s,
    )


def _agents(laws: SessionLaws, size: int, rng: np.random.Generator) -> IntArray:
    if laws.agents is None:
        return np.zeros(size, dtype=np.int64)
    happens = rng.random(size) < laws.agents.probability
    count = np.minimum(whole(laws.agents.count, size, rng), laws.agents.most)
    return np.where(happens, count, 0)


def _resets(laws: SessionLaws, size: int, rng: np.random.Generator) -> IntArray:
    if laws.reset_probability == 0.0:
        return np.zeros(size, dtype=np.int64)
    happens = rng.random(size) < laws.reset_probability
    return np.where(happens, whole(laws.reset_tokens or laws.first_tokens, size, rng), 0)
