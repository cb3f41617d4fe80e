"""The grid of the network set: systems, analytic points, and the simulated points it ships.

``python -m capmodel.validate.network_grid`` simulates the grid again (about half an hour).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from ..network.operating_point import Cache
from ..simulate import SimulationCase, published_case, simulate
from ..spec.distributions import LognormalMixture
from ..spec.turn_moments import workload_of_turns
from ..spec.workload import Workload

DATA = Path(__file__).parent / "data"
SYSTEMS = DATA / "network_grid.yaml"
POINTS = DATA / "network_points.csv"
COLUMNS = (
    "system", "concurrency", "turns", "requests_per_s", "requests_half_width", "hit_rate",
    "hit_rate_offload", "ttft_mean_s", "ttft_p50_s", "ttft_p90_s", "tpot_mean_s", "preemptions",
)  # fmt: skip
TURNS, SEEDS = 24_000, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One system of the grid: the same numbers for the simulator and for the network stage."""

    name: str
    title: str
    case: SimulationCase
    workload: Workload
    cache: Cache
    concurrency: tuple[int, ...]


def systems() -> list[System]:
    """Return the systems of the grid."""
    grid = yaml.safe_load(SYSTEMS.read_text(encoding="utf-8"))
    return [_system(item, grid["concurrency_over_fit"]) for item in grid["systems"]]


def _system(item: Mapping[str, Any], shares: list[float]) -> System:
    case = published_case(item["base"], concurrency=1, tier=bool(item.get("tier", False)))
    laws = case.sessions
    assert not isinstance(laws, tuple)  # the published cases have one class
    think, turns, new = laws.think_time, laws.turns, laws.new_tokens
    laws = replace(
        laws,
        think_time=_changed(think, item.get("think_mean"), item.get("think_cv")),
        turns=_changed(turns, None, item.get("turns_cv")),
        new_tokens=_changed(new, item.get("new_mean"), None),
    )
    case = replace(case, sessions=laws, kv_tokens=case.kv_tokens * item.get("kv_share", 1.0))
    workload = workload_of_turns(
        item["name"],
        first_tokens=laws.first_tokens,
        new_tokens=laws.new_tokens,
        output_tokens=laws.output_tokens,
        turns=laws.turns,
        think_time=laws.think_time,
        shared_prefix_tokens=case.shared_prefix_tokens,
        max_context_tokens=case.max_context_tokens,
    )
    tier = case.tier
    cache = Cache(
        hbm_tokens=case.kv_tokens,
        tier_tokens=0.0 if tier is None else tier.tokens,
        link_s_per_token=0.0 if tier is None else tier.bytes_per_token / tier.bytes_per_s,
    )
    fit = (case.kv_tokens - case.shared_prefix_tokens) / workload.tree_tokens_mean
    stretch = 1.8 if tier is not None else 1.0
    sessions = sorted({max(round(share * fit * stretch), 1) for share in shares})
    return System(
        name=item["name"],
        title=item["title"],
        case=case,
        workload=workload,
        cache=cache,
        concurrency=tuple(sessions),
    )


def _changed(law: LognormalMixture, mean: float | None, cv: float | None) -> LognormalMixture:
    return LognormalMixture.from_mean_cv(
        law.mean() if mean is None else mean, law.cv() if cv is None else cv
    )


def simulated_points() -> list[dict[str, str]]:
    """Return the simulated points that the package ships, one mapping per row."""
    with POINTS.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def simulate_grid() -> Iterator[dict[str, Any]]:
    """Simulate every point of the grid, in order."""
    for system in systems():
        for concurrency in system.concurrency:
            result = simulate(
                replace(system.case, concurrency=concurrency), turns=TURNS, seeds=SEEDS
            )
            yield {
                "system": system.name,
                "concurrency": concurrency,
                "turns": result.turns,
                "requests_per_s": f"{result.requests_per_s:.6g}",
                "requests_half_width": f"{result.half_widths['requests_per_s']:.3g}",
                "hit_rate": f"{result.hit_rate.overall:.5f}",
                "hit_rate_offload": f"{result.hit_rate.offload:.5f}",
                "ttft_mean_s": f"{result.ttft_s.mean:.5g}",
                "ttft_p50_s": f"{result.ttft_s.p50:.5g}",
                "ttft_p90_s": f"{result.ttft_s.p90:.5g}",
                "tpot_mean_s": f"{result.tpot_s.mean:.5g}",
                "preemptions": result.preemptions,
            }


def main() -> None:
    """Write the simulated points anew."""
    with POINTS.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in simulate_grid():
            writer.writerow(row)
            stream.flush()
            print(f"{row['system']} C={row['concurrency']} {row['requests_per_s']}/s")


if __name__ == "__main__":
    main()
