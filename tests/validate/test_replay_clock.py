"""The replay's clock: exact for one session, right for several by simulation, harmless for many."""

from __future__ import annotations

import numpy as np
import pytest

from capmodel import catalog
from capmodel.spec.distributions import LognormalMixture
from capmodel.validate.replay_clock import replayed_requests_per_s, skipped_share

GAPS = catalog.workload("agentic-coding").think_time
SERVICE_S = 6.0


def test_one_session_waits_at_most_the_cap() -> None:
    rate = 1.0 / (GAPS.mean() + SERVICE_S)
    shown = replayed_requests_per_s(GAPS, rate, 1.0)
    capped = float(GAPS.limited_mean(np.asarray([10.0]))[0])
    assert shown == pytest.approx(1.0 / (capped + SERVICE_S), rel=1e-9)


def test_gaps_below_the_cap_are_never_skipped() -> None:
    assert skipped_share(LognormalMixture.constant(9.0), 0.05, 1.0) == 0.0


def test_the_skipped_share_falls_with_every_session_more() -> None:
    shares = [skipped_share(GAPS, c / (GAPS.mean() + SERVICE_S), c) for c in (1, 2, 4, 8, 16)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 1e-3


@pytest.mark.parametrize("sessions", [2, 4])
def test_the_skipped_share_agrees_with_a_simulated_clock(sessions: int) -> None:
    """Independent sessions without a queue: gaps drawn, service constant, clock skipping."""
    rng = np.random.default_rng(sessions)
    turns = 60_000
    parts = rng.choice(len(GAPS.weights), p=GAPS.weights, size=(sessions, turns))
    medians, sigmas = np.asarray(GAPS.medians), np.asarray(GAPS.sigmas)
    gaps = np.exp(np.log(medians[parts]) + sigmas[parts] * rng.normal(size=parts.shape))
    gaps = np.minimum(gaps, GAPS.cap)
    ends = np.cumsum(gaps + SERVICE_S, axis=1)
    starts = ends - SERVICE_S
    horizon = ends[:, -1].min()
    order = np.argsort(starts.ravel())
    begin, end = starts.ravel()[order], ends.ravel()[order]
    kept = begin < horizon
    begin, end = begin[kept], np.maximum.accumulate(end[kept])
    idle = np.maximum(begin[1:] - end[:-1], 0.0)
    simulated = np.maximum(idle - 10.0, 0.0).sum() / horizon
    rate = sessions / (GAPS.mean() + SERVICE_S)
    assert skipped_share(GAPS, rate, sessions) == pytest.approx(simulated, rel=0.06)
