"""Prefill and decode in pools of their own: matched rates, and the link between them."""

from __future__ import annotations

from typing import NamedTuple

from .prefill import decode_step_s, packed_prefill_s, prefill_s
from .step_law import StepLaw
from .transfer import Transfer

_BISECTIONS = 80


class DisaggregatedPoint(NamedTuple):
    """One operating point of two pools.

    Parameters
    ----------
    ttft_s : float
        Waiting, prefill and transfer of the context [s].
    tpot_s : float
        Time per output token, undisturbed by prefills [s].
    output_tokens_per_s : float
        Output of both pools together [tokens/s].
    prefill_utilization : float
        Busy share of the prefill pool [1].
    decoding : float
        Sequences in decode over all replicas [1].
    """

    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float
    prefill_utilization: float
    decoding: float


def disaggregated_point(
    prefill: StepLaw,
    decode: StepLaw,
    transfer: Transfer,
    input_tokens: float,
    output_tokens: float,
    concurrency: float,
    *,
    prefill_replicas: int = 1,
    decode_replicas: int = 1,
) -> DisaggregatedPoint:
    """Predict a closed loop of C clients over a prefill pool, a link and a decode pool.

    Parameters
    ----------
    prefill, decode : StepLaw
        Step times of one replica of each pool.
    transfer : Transfer
        Link that carries a prefilled context to the decode pool.
    input_tokens, output_tokens : float
        Length of every prompt, none of it cached, and of every answer [tokens].
    concurrency : float
        Clients [1].
    prefill_replicas, decode_replicas : int
        Replicas of each pool [1].

    Notes
    -----
    With n sequences in decode the output rate is ``X(n) = n / (D d(n / N_d))``, D decode steps per
    request. Clients are in decode, or in prefill and on the link, or waiting for prefill:
    ``C = n + X (P + L) + waiting``, nobody waiting until ``X`` reaches the pool's ``N_p / P``.
    Layer-wise transfer hides all of L but one layer under the prefill, to the extent it overlaps.
    Exact for: equal lengths, no queue below saturation.
    """
    alone = float(prefill_s(prefill, input_tokens)) + prefill.request_s
    served = packed_prefill_s(prefill, input_tokens)
    load = transfer.load_s(input_tokens)
    shown = load - transfer.overlap * min(alone, (1.0 - transfer.first_layer) * load)
    decode_steps = max(output_tokens - 1.0, 1.0) / decode.accepted_tokens
    context = input_tokens + 0.5 * output_tokens
    capacity = prefill_replicas / served

    def rate(decoding: float) -> float:
        batch = decoding / decode_replicas
        step = float(decode_step_s(decode, max(batch, 1.0), context))
        return decoding / (decode_steps * step)

    most = min(concurrency, decode.max_sequences * float(decode_replicas))
    low, high = 0.0, most
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        turns = rate(middle)
        fits = turns <= capacity and middle + turns * (alone + shown) <= concurrency
        low, high = (middle, high) if fits else (low, middle)
    decoding = low
    requests_per_s = rate(decoding)
    return DisaggregatedPoint(
        ttft_s=(concurrency - decoding) / requests_per_s,
        tpot_s=decoding / requests_per_s / max(output_tokens - 1.0, 1.0),
        output_tokens_per_s=requests_per_s * output_tokens,
        prefill_utilization=requests_per_s / capacity,
        decoding=decoding,
    )


def matched_prefill_replicas(
    prefill: StepLaw,
    decode: StepLaw,
    input_tokens: float,
    output_tokens: float,
    decode_sequences: float,
) -> float:
    """Prefill replicas that keep one decode replica at so many sequences, as a real number [1].

    Notes
    -----
    Rates match where ``N_p / P = n / (D d(n))``.
    """
    decode_steps = max(output_tokens - 1.0, 1.0) / decode.accepted_tokens
    context = input_tokens + 0.5 * output_tokens
    step = float(decode_step_s(decode, decode_sequences, context))
    return packed_prefill_s(prefill, input_tokens) * decode_sequences / (decode_steps * step)
