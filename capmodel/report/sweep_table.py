"""A sweep as an aligned table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..results import Estimate, Sweep

HEADER = (
    "    C   out tok/s  (hour p50)    hits   hour p50  collapse   TTFT p50     p90   "
    "tok/s/user   $/session  $/M total"
)


def sweep_table(sweep: Sweep) -> str:
    """Return one line per concurrency, then the peak and the cliff."""
    lines = [HEADER, *(_line(row) for row in sweep.rows)]
    cliff = sweep.cliff_concurrency
    past = "no row is past the cliff" if cliff is None else f"past the cliff from C = {cliff}"
    lines.append(f"best output at C = {sweep.peak_concurrency}; {past}")
    for row in sweep.rows:
        case = row.nearest
        if case is not None:
            lines.append(
                f"measured at C = {row.concurrency}: {case.measured:.4g} {case.metric}, model "
                f"{case.predicted:.4g} ({case.relative_error:+.0%})  {case.source}"
            )
    notes = {note for row in sweep.rows for note in row.warnings}
    lines += [f"note: {note}" for note in sorted(notes)]
    return "\n".join(lines)


def _line(row: Estimate) -> str:
    workload = row.run.scenario.workload
    out = workload.output_tokens_mean * row.run.ranks
    rate = row.hour.quantiles(row.hour.requests_per_s * out)["p50"]
    hits = row.hour.quantiles(row.hour.hit_rate)["p50"]
    cost = row.run.cost
    session = "-" if cost.usd_per_session is None else f"{cost.usd_per_session:.2f}"
    total = "-" if cost.usd_per_mtok_total is None else f"{cost.usd_per_mtok_total:.3f}"
    return (
        f"{row.concurrency:5d}  {row.output_tokens_per_s:10.1f}  {rate:10.1f}  "
        f"{row.hit_rate.overall:6.1%}  {hits:9.1%}  "
        f"{row.hour.collapsed(workload.theoretical_hit_rate):8.0%}  "
        f"{row.latency.ttft_s.p50:8.2f} s {row.latency.ttft_s.p90:6.1f} s  "
        f"{1 / row.latency.tpot_s.p50:10.1f}  {session:>10}  {total:>9}"
    )
