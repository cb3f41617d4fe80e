"""Replayed and traced hit rates with the laws they are to be predicted from."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..reuse.lane_law import LaneLaw
from ..reuse.open_loop import ReuseTimes

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseCase:
    """One point of an exact replay.

    Parameters
    ----------
    service : str
        ``none``, ``recorded`` or ``prefill:RATE``.
    think_time_cap_s : float
        Cap on gaps [s].
    concurrency : int
        Lanes C [1].
    capacity_tokens : float
        Cache B [tokens].
    hit_rate, scatter, theoretical_hit_rate : float
        Mean over seeds, standard deviation over seeds, ceiling [1].
    """

    service: str
    think_time_cap_s: float
    concurrency: int
    capacity_tokens: float
    hit_rate: float
    scatter: float
    theoretical_hit_rate: float

    @property
    def regime(self) -> str:
        """Before, at or past the cliff: hits over 90%, between, under 10% of the ceiling."""
        share = self.hit_rate / self.theoretical_hit_rate
        return "before" if share >= 0.9 else "past" if share < 0.1 else "transition"

    @property
    def label(self) -> str:
        """What the point is, in one line."""
        return (
            f"{self.service}, gaps <= {self.think_time_cap_s:g} s, C={self.concurrency}, "
            f"B={self.capacity_tokens:g}"
        )


@cache
def replay_cases() -> tuple[ReuseCase, ...]:
    """Return the points of the exact replays of the recorded sessions."""
    with (DATA / "reuse_cases.csv").open(encoding="utf-8", newline="") as stream:
        return tuple(
            ReuseCase(
                service=row["service"],
                think_time_cap_s=float(row["think_cap_s"]),
                concurrency=int(row["concurrency"]),
                capacity_tokens=float(row["kv_tokens"]),
                hit_rate=float(row["hit_rate"]),
                scatter=float(row["sd_seeds"]),
                theoretical_hit_rate=float(row["hit_rate_infinite"]),
            )
            for row in csv.DictReader(stream)
        )


def law_to_dict(law: LaneLaw) -> dict[str, Any]:
    """Return a law as plain numbers of six digits."""
    return {
        item.name: np.vectorize(lambda x: float(f"{x:.6g}"))(getattr(law, item.name)).tolist()
        for item in fields(law)
    }


def law_from_dict(item: dict[str, Any]) -> LaneLaw:
    """Return the law that plain numbers describe."""
    values: dict[str, Any] = {
        name: np.asarray(value, dtype=np.float64) if isinstance(value, list) else float(value)
        for name, value in item.items()
    }
    return LaneLaw(**values)


@cache
def recorded_law(think_time_cap_s: float) -> LaneLaw:
    """Return the law of one lane of the recorded sessions under a cap on gaps [s]."""
    laws = json.loads((DATA / "reuse_laws.json").read_text(encoding="utf-8"))["laws"]
    return law_from_dict(laws[f"{think_time_cap_s:g}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCase:
    """A public request trace: its reuse times and its exact LRU curve."""

    name: str
    reuse: ReuseTimes
    capacity_tokens: tuple[float, ...]
    hit_rate: tuple[float, ...]


@cache
def trace_cases() -> tuple[TraceCase, ...]:
    """Return the open-loop traces."""
    rows: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    with (DATA / "reuse_traces.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            rows[row["trace"]][row["kind"]].append((float(row["x"] or "nan"), float(row["value"])))
    cases = []
    for name, kinds in rows.items():
        time, survival = zip(*kinds["survival"], strict=True)
        room, rate = zip(*kinds["exact_hit_rate"], strict=True)
        reuse = ReuseTimes(
            time_s=np.asarray(time),
            survival=np.minimum.accumulate(survival),
            tokens_per_s=kinds["token_touch_rate_per_s"][0][1],
        )
        cases.append(TraceCase(name=name, reuse=reuse, capacity_tokens=room, hit_rate=rate))
    return tuple(cases)
