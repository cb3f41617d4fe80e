"""Prefill and decode: seconds of the steps that one request needs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from .step_law import FloatArray, StepLaw


def prefill_s(
    law: StepLaw,
    new_tokens: npt.ArrayLike,
    start_tokens: npt.ArrayLike = 0.0,
    decode_sequences: npt.ArrayLike = 0.0,
    decode_context_tokens: npt.ArrayLike = 0.0,
) -> FloatArray:
    """Seconds of the steps that carry one prompt, chunked under the batched-token budget.

    Parameters
    ----------
    law : StepLaw
        Step times of the replica.
    new_tokens : array_like
        Prompt tokens to compute, after any prefix hit [tokens].
    start_tokens : array_like
        Context found in cache before them [tokens].
    decode_sequences : array_like
        Sequences that decode beside it; they take their tokens out of the budget first, and in
        an engine without mixed steps they wait instead [1].
    decode_context_tokens : array_like
        Their mean context [tokens].

    Returns
    -------
    ndarray
        From the first step that holds a token of the prompt to the end of the last [s].

    Notes
    -----
    ``sum_i tau(x_i, p + i b, j, c)`` over chunks of the budget b, the last one partial. A pipeline
    of s stages adds s - 1 stage times of the last chunk before the first token leaves it.
    """
    total, last = _chunks_s(law, new_tokens, start_tokens, decode_sequences, decode_context_tokens)
    return np.asarray(total + (law.pipeline_stages - 1) * last)


def _chunks_s(
    law: StepLaw,
    new_tokens: npt.ArrayLike,
    start_tokens: npt.ArrayLike,
    decode_sequences: npt.ArrayLike,
    decode_context_tokens: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Seconds of all chunks of a prompt one after the other, and of the last one [s]."""
    new, start, beside, context = np.broadcast_arrays(
        np.asarray(new_tokens, dtype=np.float64),
        np.asarray(start_tokens, dtype=np.float64),
        np.asarray(decode_sequences, dtype=np.float64),
        np.asarray(decode_context_tokens, dtype=np.float64),
    )
    beside = beside if law.mixed_steps else np.zeros_like(beside)
    budget = chunk_budget_tokens(law, beside)
    total = np.zeros(new.shape)
    last = np.zeros(new.shape)
    for index in range(int(np.max(np.ceil(new / budget), initial=0.0))):
        done = index * budget
        chunk = np.clip(new - done, 0.0, budget)
        step = np.where(chunk > 0, _chunk_s(law, chunk, start + done, beside, context), 0.0)
        total = total + step
        last = np.where(chunk > 0, step, last)
    return total, last


def _chunk_s(
    law: StepLaw, chunk: FloatArray, start: FloatArray, beside: FloatArray, context: FloatArray
) -> FloatArray:
    """Seconds of one chunk, per stage of a pipeline that has a chunk in every stage [s]."""
    stages = law.pipeline_stages
    if stages == 1:
        return law.step_s(chunk, start, beside, context)
    row = law.features(chunk, start, beside, context)
    tokens = stages * chunk + law.verify_tokens * beside
    row[..., 1] = tokens
    row[..., 6] = law.coverage(tokens)
    for feature in (4, 5, 7):
        row[..., feature] *= stages
    return np.asarray(law.seconds_of(row) / stages)


def chunk_budget_tokens(law: StepLaw, decode_sequences: npt.ArrayLike) -> FloatArray:
    """Prompt tokens a step has room for beside so many decoding sequences [tokens].

    Raises
    ------
    SpecError
        If the decodes alone fill the budget, so that a prompt would never start.
    """
    room = law.max_batched_tokens - law.verify_tokens * np.asarray(
        decode_sequences, dtype=np.float64
    )
    if np.any(room < 1):
        raise SpecError(
            f"{law.max_batched_tokens} batched tokens leave no room for prefill; raise "
            "max_num_batched_tokens or lower max_num_seqs.",
            field="max_num_batched_tokens",
        )
    return np.asarray(room)


def decode_step_s(
    law: StepLaw, sequences: npt.ArrayLike, context_tokens: npt.ArrayLike
) -> FloatArray:
    """Seconds of a step in which so many sequences decode at a mean context [s]."""
    return law.step_s(0.0, 0.0, sequences, context_tokens)


def output_token_s(
    law: StepLaw, sequences: npt.ArrayLike, context_tokens: npt.ArrayLike
) -> FloatArray:
    """Seconds per output token of a sequence with no prefill beside, drafts accepted [s]."""
    return np.asarray(decode_step_s(law, sequences, context_tokens) / law.accepted_tokens)


def packed_prefill_s(
    law: StepLaw,
    new_tokens: float,
    waiting: float = math.inf,
    decode_sequences: float = 0.0,
    decode_context_tokens: float = 0.0,
) -> float:
    """Seconds per prompt where `waiting` equal prompts without a cached prefix fill the steps.

    Parameters
    ----------
    law : StepLaw
        Step times of the replica.
    new_tokens : float
        Length of every prompt [tokens].
    waiting : float
        Prompts that wait together, at least one [1].
    decode_sequences, decode_context_tokens : float
        Sequences decoding in the same steps [1] and their mean context [tokens].

    Notes
    -----
    Prompts shorter than the budget share a step, which then reads the weights once for all of
    them; a longer one takes its chunks alone.
    """
    beside = decode_sequences if law.mixed_steps else 0.0
    prompts = _prompts_per_step(law, new_tokens, waiting, beside)
    if prompts <= 1.0:
        return float(_chunks_s(law, new_tokens, 0.0, beside, decode_context_tokens)[0])
    tokens = prompts * new_tokens + law.verify_tokens * beside
    row = np.array(
        [
            1.0,
            tokens,
            beside,
            beside * decode_context_tokens,
            prompts * 0.5 * new_tokens**2,
            prompts * new_tokens,
            float(law.coverage(tokens)),
            prompts,
        ]
    )
    return float(law.seconds_of(row)) / prompts


def steps_per_prompt(
    law: StepLaw, new_tokens: float, waiting: float = math.inf, decode_sequences: float = 0.0
) -> float:
    """Steps that carry a part of one prompt, shared ones counted in proportion [1]."""
    beside = decode_sequences if law.mixed_steps else 0.0
    prompts = _prompts_per_step(law, new_tokens, waiting, beside)
    if prompts > 1.0:
        return 1.0 / prompts
    return float(np.ceil(new_tokens / chunk_budget_tokens(law, beside)))


def _prompts_per_step(law: StepLaw, new_tokens: float, waiting: float, beside: float) -> float:
    fit = float(chunk_budget_tokens(law, beside)) / new_tokens
    return max(1.0, min(waiting, math.floor(fit)))
