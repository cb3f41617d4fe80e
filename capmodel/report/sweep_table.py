"""A sweep as an aligned table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..units import format_count

if TYPE_CHECKING:
    from ..results import Estimate, Sweep

HEADER = (
    "    C   out tok/s  (hour p50)    hits   hour p50{ends}  collapse   TTFT p50     p90   "
    "tok/s/user   $/session  $/M total"
)


LARGE_ERROR = 0.3  # a measured case missed by more is called a miss


def sweep_table(sweep: Sweep) -> str:
    """Return one line per concurrency, then the peak and the cliff.

    Beside the median hour's hits stand those at both ends of the working set's evidence.
    """
    ends = "".join(
        f"  at {format_count(e.tree_tokens_mean)}" for e in sweep.rows[0].working_set_ends
    )
    lines = [HEADER.format(ends=ends), *(_line(row) for row in sweep.rows)]
    cliff = sweep.cliff_concurrency
    past = "no row is past the cliff" if cliff is None else f"past the cliff from C = {cliff}"
    lines.append(f"best output at C = {sweep.peak_concurrency}; {past}")
    for row in sweep.rows:
        case = row.nearest
        if case is not None:
            label = "MISS" if abs(case.relative_error) > LARGE_ERROR else "measured"
            lines.append(
                f"{label:<8} at C = {row.concurrency}: {case.measured:.4g} {case.metric}, model "
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
        f"{row.hit_rate.overall:6.1%}  {hits:9.1%}"
        + "".join(f"  {end.hour_hit_rate:7.1%}" for end in row.working_set_ends)
        + "  "
        f"{row.hour.collapsed(workload.theoretical_hit_rate):8.0%}  "
        f"{row.latency.ttft_s.p50:8.2f} s {row.latency.ttft_s.p90:6.1f} s  "
        f"{1 / row.latency.tpot_s.p50:10.1f}  {session:>10}  {total:>9}"
    )
