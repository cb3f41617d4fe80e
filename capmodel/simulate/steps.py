"""Seconds of a run of like steps, from the step law's matrices.

Order of the features: step, tokens, sequences, decode_context, prefill_pairs, prefill_context,
coverage, prefill_chunks (`capmodel.service.step_law.FEATURES`). Over a run the batch stays the
same, so each feature is a level plus a slope times the step's number.
"""

from __future__ import annotations

import math

from .compiled import compiled
from .state import FloatArray

(
    STEP,
    TOKENS,
    SEQUENCES,
    DECODE_CONTEXT,
    PREFILL_PAIRS,
    PREFILL_CONTEXT,
    COVERAGE,
    PREFILL_CHUNKS,
) = range(8)


@compiled
def run_s(
    compute_s: FloatArray,
    memory_s: FloatArray,
    level: FloatArray,
    slope: FloatArray,
    steps: int,
) -> float:
    """Seconds of `steps` like steps, the features starting at `level` and moving by `slope` [s].

    Both sides of a term are linear in the step's number, so the larger one changes at most once
    and the sum is two arithmetic series.
    """
    total = 0.0
    for row in range(compute_s.shape[0]):
        compute = 0.0
        memory = 0.0
        compute_rise = 0.0
        memory_rise = 0.0
        for column in range(level.shape[0]):
            compute += compute_s[row, column] * level[column]
            memory += memory_s[row, column] * level[column]
            compute_rise += compute_s[row, column] * slope[column]
            memory_rise += memory_s[row, column] * slope[column]
        lead = compute - memory
        rise = compute_rise - memory_rise
        first = steps  # steps before the larger side changes
        if lead * rise < 0.0:
            crossing = -lead / rise
            if crossing < steps:
                first = math.ceil(crossing)
        compute_leads = lead > 0.0 or (lead == 0.0 and rise >= 0.0)
        for part in range(2):
            start = 0 if part == 0 else first
            count = first if part == 0 else steps - first
            at, rate = memory, memory_rise
            if compute_leads == (part == 0):
                at, rate = compute, compute_rise
            total += count * (at + rate * (start + 0.5 * (count - 1)))
    return total


@compiled
def steps_until(
    compute_s: FloatArray,
    memory_s: FloatArray,
    level: FloatArray,
    slope: FloatArray,
    limit: int,
    seconds: float,
) -> int:
    """Fewest like steps, at most `limit`, that last at least `seconds` [1]."""
    if limit <= 1 or run_s(compute_s, memory_s, level, slope, limit) <= seconds:
        return limit
    first_s = run_s(compute_s, memory_s, level, slope, 1)
    # Steps only grow longer, so the first one's length bounds the number from above.
    high = min(limit, math.ceil(seconds / first_s) + 1)
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if run_s(compute_s, memory_s, level, slope, middle) < seconds:
            low = middle
        else:
            high = middle
    return high
