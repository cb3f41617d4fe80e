"""Small session tables that the tests of the reuse stage draw or load."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from capmodel.ingest.sessions import read_sessions
from capmodel.reuse.session_table import SessionTable

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
needs_reference = pytest.mark.skipif(
    not REFERENCE.exists(), reason="the reference folder is not beside the repository"
)


@cache
def recorded_table() -> SessionTable:
    """The recorded sessions of the reference folder."""
    return SessionTable.from_columns(read_sessions(REFERENCE / "agentic_sessions.csv.gz"))


def drawn_table(seed: int = 0, sessions: int = 40, scale: float = 1000.0) -> SessionTable:
    """Sessions of growing contexts with random gaps and services, some of them reset."""
    rng = np.random.default_rng(seed)
    starts, rows = [0], []
    for _ in range(sessions):
        context = 0.0
        for turn in range(int(rng.integers(2, 30))):
            prefix = 0.0 if turn == 0 else np.floor(context * rng.choice([1.0, 1.0, 1.0, 0.4]))
            context = prefix + np.ceil(scale * rng.lognormal(-1.5 + (turn == 0) * 1.5, 0.7))
            gap = rng.lognormal(2.0, 1.0) if turn else 0.0
            rows.append((context, prefix, rng.integers(10, 500), gap, rng.lognormal(1.0, 0.5)))
        starts.append(len(rows))
    table = np.array(rows)
    return SessionTable(
        session_starts=np.array(starts, dtype=np.int64),
        input_tokens=table[:, 0],
        prefix_tokens=table[:, 1],
        recent_prefix_tokens=table[:, 1],
        prefix_lag=(table[:, 1] > 0).astype(np.int64),
        output_tokens=table[:, 2],
        think_s=table[:, 3],
        service_s=table[:, 4],
    )
