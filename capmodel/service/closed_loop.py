"""The fixed-length closed loop: what a benchmark with C clients and no prefix reuse measures."""

from __future__ import annotations

import math
from typing import NamedTuple

from .prefill import decode_step_s, packed_prefill_s, prefill_s, steps_per_prompt
from .step_law import StepLaw

_ITERATIONS = 40
_TOLERANCE = 1e-6


class FixedLengthPoint(NamedTuple):
    """One benchmark point.

    Parameters
    ----------
    ttft_s : float
        Mean time to first token, waiting included [s].
    tpot_s : float
        Mean (end-to-end - TTFT) / (output - 1) [s].
    output_tokens_per_s : float
        Output of the replica [tokens/s].
    prefill_share : float
        Share of the time that prompts take [1].
    running : float
        Requests inside the engine [1].
    decode_step_s : float
        A step without any prefill in it [s].
    """

    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float
    prefill_share: float
    running: float
    decode_step_s: float


def fixed_length_point(
    law: StepLaw,
    input_tokens: float,
    output_tokens: float,
    concurrency: float,
    *,
    burst_share: float = 0.0,
    running_limit: float = math.inf,
) -> FixedLengthPoint:
    """Predict a closed loop of C clients that each send the next prompt when one is answered.

    Parameters
    ----------
    law : StepLaw
        Step times of the replica.
    input_tokens, output_tokens : float
        Length of every prompt, none of it cached, and of every answer [tokens].
    concurrency : float
        Clients [1].
    burst_share : float
        Share of requests that arrive together with all others: 1 for identical lengths, which
        stay in lockstep, 1/w for w waves of varied lengths that start together [1].
    running_limit : float
        Requests the KV pool holds at once, if fewer than the engine's own limit [1].

    Notes
    -----
    A cycle prefills each running request once and decodes ``D = (out - 1) / accepted`` steps.
    Separate steps: ``T = N P + D d(N)``. Mixed steps: of S steps, ``N n_c`` carry a chunk and take
    m, the others d; each request spends n_c steps in prefill and D in decode, so ``S = D + n_c``
    unless the chunks alone need more, ``S = N n_c``. Throughput ``N out / T`` follows from the
    cycle alone; how arrivals bunch only moves time between TTFT and TPOT.
    Exact for: equal lengths and step times linear in the batch. Approximate for: varied lengths.
    """
    running = min(concurrency, law.max_sequences, running_limit)
    context = input_tokens + 0.5 * output_tokens
    decode_steps = max(output_tokens - 1.0, 0.0) / law.accepted_tokens
    together = 1.0 + burst_share * (running - 1.0)
    shape = _Shape(input_tokens, context, decode_steps, running, together)
    cycle, prefill, share = (_mixed_cycle if law.mixed_steps else _separate_cycle)(law, shape)
    alone = float(prefill_s(law, input_tokens))
    # Fewer requests than pipeline stages leave stages empty: a cycle is never under its latency.
    cycle = max(cycle, alone + decode_steps * float(decode_step_s(law, 1.0, context)))
    others = share * (running - 1.0) / running
    waiting = burst_share * 0.5 * (running - 1.0) + (1.0 - burst_share) * 0.5 * others
    inside = min(max(alone, prefill) + waiting * prefill, cycle)
    # The front end works on a request while the engine serves the others.
    inside, cycle = inside + law.request_s, cycle + law.request_s
    return FixedLengthPoint(
        ttft_s=inside + (concurrency / running - 1.0) * cycle,
        tpot_s=(cycle - inside) / max(output_tokens - 1.0, 1.0),
        output_tokens_per_s=running * output_tokens / cycle,
        prefill_share=share,
        running=running,
        decode_step_s=float(decode_step_s(law, running, context)),
    )


class _Shape(NamedTuple):
    """What one cycle of the loop has to do."""

    input_tokens: float
    context_tokens: float
    decode_steps: float
    running: float
    together: float


def _separate_cycle(law: StepLaw, shape: _Shape) -> tuple[float, float, float]:
    """Return (cycle [s], seconds per prompt [s], prefill share [1]); prompts stop the decodes."""
    arrivals = shape.running / (shape.decode_steps + 1.0)
    prompt = packed_prefill_s(law, shape.input_tokens, max(shape.together, arrivals))
    step = float(decode_step_s(law, shape.running, shape.context_tokens))
    cycle = shape.running * prompt + shape.decode_steps * step
    return cycle, prompt, shape.running * prompt / cycle


def _mixed_cycle(law: StepLaw, shape: _Shape) -> tuple[float, float, float]:
    """Return (cycle [s], seconds per prompt [s], share of steps with a chunk [1])."""
    running, decodes = shape.running, shape.decode_steps
    arrivals = max(shape.together, running / (decodes + 1.0))
    beside = running - 1.0
    for _ in range(_ITERATIONS):
        per_prompt = steps_per_prompt(law, shape.input_tokens, arrivals, beside)
        carrying = running * per_prompt
        steps = max(decodes + per_prompt, carrying)
        update = (running - 1.0) * decodes / steps
        if abs(update - beside) <= _TOLERANCE * running:
            break
        beside = 0.5 * (beside + update)
    prompt = packed_prefill_s(law, shape.input_tokens, arrivals, beside, shape.context_tokens)
    plain_steps = steps - carrying
    cycle = running * prompt
    if plain_steps > 0:
        decoding = min(running, (running * decodes - carrying * beside) / plain_steps)
        cycle += plain_steps * float(decode_step_s(law, decoding, shape.context_tokens))
    return cycle, prompt, carrying / steps
