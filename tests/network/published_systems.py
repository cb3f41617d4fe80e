"""The three published systems of the solver tests, as step law, budget and workload moments.

Workload moments follow from the session laws by renewal-reward over turns: a random turn has age k
with probability P(K >= k)/E[K].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from capmodel.normal import quantile
from capmodel.service.step_law import StepLaw, raw_step_law
from capmodel.spec.distributions import LognormalMixture
from capmodel.spec.workload import Workload

H100_FP8, H200_BYTES_PER_S = 1979e12, 4.8e12


@dataclass(frozen=True, kw_only=True)
class Case:
    law: StepLaw
    kv_tokens: float
    workload: Workload
    requests_per_s: dict[int, float]
    hit_rate: dict[int, float]
    ttft_s: dict[int, float]
    peak: int


def session_workload(
    name: str,
    *,
    shared: float,
    first: tuple[float, float],
    new: float,
    output: float,
    turns: tuple[float, float],
    think: tuple[float, float],
    limit: float,
) -> Workload:
    sigma = math.sqrt(math.log1p(turns[1] ** 2))
    strata = (np.arange(200_000) + 0.5) / 200_000
    k = np.maximum(np.round(turns[0] * np.exp(sigma * quantile(strata) - sigma**2 / 2)), 1)
    k = np.minimum(k, max(1, int((limit - shared - first[0]) / (new + output))))
    mean, square = k.mean(), (k**2).mean()
    age = (square + mean) / (2 * mean)
    age_square = (k * (k + 1) * (2 * k + 1) / 6).mean() / mean
    step = new + output
    tree = first[0] + output + (age - 1) * step
    variance = (
        (first[0] * first[1]) ** 2
        + output**2
        + (age - 1) * (new**2 + output**2)
        + step**2 * (age_square - age**2)
    )
    prompt = shared + first[0] + (age - 1) * step
    fresh = (first[0] + (mean - 1) * new) / mean
    second = (first[0] ** 2 * (1 + first[1] ** 2) + (mean - 1) * 2 * new**2) / mean
    return Workload(
        name=name,
        request_tokens_mean=prompt,
        request_tokens_cv=math.sqrt(variance) / prompt,
        tree_tokens_mean=tree,
        tree_tokens_cv=math.sqrt(variance) / tree,
        output_tokens_mean=output,
        output_tokens_cv=1.0,
        turns_mean=mean,
        turns_cv=math.sqrt(square / mean**2 - 1),
        theoretical_hit_rate=1 - fresh / prompt,
        think_time=LognormalMixture.from_mean_cv(*think),
        new_tokens_cv=math.sqrt(second / fresh**2 - 1),
        shared_prefix_tokens=shared,
    )


CASES = {
    "kimi-k3-8xB300": Case(
        law=raw_step_law(
            active_params=60e9,
            fixed_weight_bytes=90e9,
            expert_weight_bytes=1.40e12,
            experts=896,
            experts_per_token=16,
            flop_per_s=3.0e15,
            bytes_per_s=8 * 8e12 * 0.6,
            prefill_pair_flop=1.5e6,
            decode_pair_flop=5.0e6,
            kv_read_bytes_per_token=8 * 13955,
            step_overhead_s=4e-3,
            max_batched_tokens=2048,
        ),
        kv_tokens=3.249e6,
        workload=session_workload(
            "k3",
            shared=15e3,
            first=(20e3, 0.6),
            new=2480,
            output=444,
            turns=(65, 0.6),
            think=(15, 1.2),
            limit=1_048_576,
        ),
        requests_per_s={
            2: 0.1062, 4: 0.2085, 8: 0.3980, 10: 0.4862, 12: 0.5631, 13: 0.5893, 14: 0.5973,
            15: 0.5955, 16: 0.4929, 18: 0.3540, 20: 0.2042, 24: 0.0965, 32: 0.0625,
        },
        hit_rate={4: 0.983, 12: 0.983, 14: 0.978, 16: 0.955, 18: 0.909, 20: 0.796, 24: 0.466,
                  32: 0.103},
        ttft_s={4: 0.36, 8: 0.39, 10: 0.41},
        peak=14,
    ),
    "llama-3.1-70b-8xH100": Case(
        law=raw_step_law(
            active_params=70e9,
            fixed_weight_bytes=70e9,
            expert_weight_bytes=0.0,
            experts=1,
            experts_per_token=1,
            flop_per_s=8 * H100_FP8 * 0.45,
            bytes_per_s=8 * 3.35e12 * 0.7,
            prefill_pair_flop=4 * 80 * 8192,
            decode_pair_flop=4 * 80 * 8192,
            kv_read_bytes_per_token=327680,
            step_overhead_s=3e-3,
            max_batched_tokens=4096,
        ),
        kv_tokens=1.40e6,
        workload=session_workload(
            "llama",
            shared=6e3,
            first=(8e3, 0.6),
            new=1600,
            output=300,
            turns=(30, 0.6),
            think=(8, 1.0),
            limit=131_072,
        ),
        requests_per_s={
            4: 0.3787, 8: 0.7323, 16: 1.3570, 20: 1.6189, 24: 1.8480, 26: 1.9386, 27: 1.9601,
            28: 1.9638, 29: 1.9489, 30: 1.8936, 32: 1.6541, 36: 1.1895, 40: 0.8414, 48: 0.7098,
        },
        hit_rate={4: 0.961, 28: 0.943, 30: 0.913, 32: 0.840, 36: 0.624, 40: 0.332, 48: 0.136},
        ttft_s={4: 0.07, 8: 0.08, 16: 0.08},
        peak=28,
    ),
    "deepseek-v3-8xH200": Case(
        law=raw_step_law(
            active_params=37e9,
            fixed_weight_bytes=25e9,
            expert_weight_bytes=640e9,
            experts=256,
            experts_per_token=8,
            flop_per_s=8 * H100_FP8 * 0.30,
            bytes_per_s=8 * H200_BYTES_PER_S * 0.6,
            prefill_pair_flop=2 * 61 * 128 * 320,
            decode_pair_flop=2 * 61 * 128 * 1088,
            kv_read_bytes_per_token=8 * 70272,
            step_overhead_s=5e-3,
            max_batched_tokens=4096,
            verify_tokens=2,
            accepted_tokens=1.8,
        ),
        kv_tokens=0.53e6,
        workload=session_workload(
            "deepseek",
            shared=4e3,
            first=(10e3, 0.6),
            new=900,
            output=400,
            turns=(40, 0.6),
            think=(5, 1.0),
            limit=163_840,
        ),
        requests_per_s={
            2: 0.2753, 4: 0.5159, 6: 0.7200, 7: 0.8069, 8: 0.8666, 9: 0.8854, 10: 0.8431,
            11: 0.7633, 12: 0.6594, 14: 0.4877, 16: 0.4101, 20: 0.3724,
        },
        hit_rate={2: 0.976, 8: 0.966, 9: 0.945, 10: 0.900, 11: 0.828, 12: 0.723, 14: 0.457,
                  16: 0.244, 20: 0.097},
        ttft_s={2: 0.08, 4: 0.08, 6: 0.09},
        peak=9,
    ),
}  # fmt: skip
