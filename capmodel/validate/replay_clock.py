"""The replay's clock: a harness that skips ahead while no session has a request in flight."""

from __future__ import annotations

import numpy as np

from ..spec.distributions import LognormalMixture

# InferenceX benchmarks/benchmark_lib.sh: idle cap of the whole system.
SYSTEM_IDLE_CAP_S = 10.0


def skipped_share(
    think_time: LognormalMixture,
    requests_per_s: float,
    sessions: float,
    cap_s: float = SYSTEM_IDLE_CAP_S,
) -> float:
    """Share of the time that the harness skips, exact for independent sessions [1].

    Parameters
    ----------
    think_time : LognormalMixture
        Gaps between a session's requests [s].
    requests_per_s : float
        Rate on an unskipped clock [requests/s].
    sessions : float
        Live sessions C [1].
    cap_s : float
        Longest time that the whole system may idle [s].

    Notes
    -----
    Let c = C/X be a session's cycle and G the gap. All sessions are in a gap with probability
    (E[G]/c)^C. The system's idle period I is the least of one fresh gap and C-1 residual ones, so
    ``P(I > x) = -E[G]/C d/dx S(x)^C`` with the residual's survival ``S(x) = E[(G-x)+]/E[G]``, and
    ``E[(I-x)+]/E[I] = S(x)^C``. The skipped share is ``(E[(G-x)+] / c)^C``.
    Exact for: C = 1, where the rate becomes ``1/(E[min(G, x)] + service)``.
    """
    if requests_per_s <= 0:
        return 0.0
    excess = float(think_time.excess(np.asarray([cap_s]))[0])
    return float(min(excess * requests_per_s / sessions, 1.0) ** sessions)


def replayed_requests_per_s(
    think_time: LognormalMixture, requests_per_s: float, sessions: float
) -> float:
    """Rate that a replay shows whose clock skips idle time of the whole system [requests/s]."""
    return requests_per_s / (1.0 - min(skipped_share(think_time, requests_per_s, sessions), 0.999))
