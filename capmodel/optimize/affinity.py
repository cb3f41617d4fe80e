"""Session affinity: what it costs that sessions stay on the replica that holds their cache."""

from __future__ import annotations

import math

from ..errors import SpecError


def randomly_assigned_sessions(sessions: float, tokens_cv: float, score: float = 2.5) -> float:
    """Mean sessions per replica that random assignment allows, where `sessions` are safe if fixed.

    Parameters
    ----------
    sessions : float
        Sessions that a replica may hold when their number is fixed by a cap [1].
    tokens_cv : float
        Coefficient of variation of a session's live tokens [1].
    score : float
        Normal score of the tolerated overflow [1].

    Returns
    -------
    float
        Mean sessions per replica at the same chance of overflow [1].

    Notes
    -----
    With a random number of sessions the sum of live tokens is compound Poisson, so its standard
    deviation grows from ``s sqrt(C)`` to ``sqrt(C (s^2 + m^2))``:
    ``M + z sqrt(M (1 + k^2)) = C + z k sqrt(C)``, a quadratic in ``sqrt(M)``, k = s/m.
    A router that sends a new session to the replica with the fewest resident tokens avoids most
    of the loss; a cap per replica at the gateway avoids all of it and turns it into waiting.

    Examples
    --------
    >>> round(randomly_assigned_sessions(16.0, 0.77), 1)
    12.5
    """
    if not (sessions > 0 and tokens_cv >= 0 and score >= 0):
        raise SpecError("affinity: sessions must be positive, cv and score not negative.")
    level = sessions + score * tokens_cv * math.sqrt(sessions)
    half = 0.5 * score * math.sqrt(1.0 + tokens_cv**2)
    return (math.sqrt(level + half * half) - half) ** 2


def pooling_gain_sessions(
    naive_sessions: float, tokens_cv: float, replicas: int, score: float = 2.5
) -> float:
    """Sessions that one shared cache would hold beyond as many private ones, to first order [1].

    Parameters
    ----------
    naive_sessions : float
        Cache of one replica over the mean live tokens of a session, ``B/m`` [1].
    tokens_cv : float
        Coefficient of variation of a session's live tokens [1].
    replicas : int
        Private caches that would be pooled [1].
    score : float
        Normal score of the tolerated overflow [1].

    Notes
    -----
    ``z k sqrt(b) (N - sqrt(N))``: head-room grows with the square root of what is pooled.
    """
    return score * tokens_cv * math.sqrt(naive_sessions) * (replicas - math.sqrt(replicas))
