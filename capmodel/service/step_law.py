"""The step law: seconds of one engine step as a sum of roofline terms over eight features.

A step processes chunks of prefill and one decode position (or a draft to verify) of every running
sequence. Its cost is a sum over kernel classes run one after the other; each class is bound by
the larger of two sides (matrix units, memory), and each side is linear in the same features. That
one form serves the scalar path, a vectorised sweep and the simulator's compiled loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..errors import SpecError

FloatArray = npt.NDArray[np.float64]

# Rows of a vectorised evaluation worked on at a time, so that they stay in the core's cache.
_BLOCK_ROWS = 4096

FEATURES = (
    "step",  # 1 for every step that runs
    "tokens",  # token positions computed: prefill chunk + verified positions of decodes
    "sequences",  # decoding sequences
    "decode_context",  # sum over decoding sequences of their context [tokens]
    "prefill_pairs",  # sum over prefill chunks of x (p + x/2): (query, context) pairs [tokens^2]
    "prefill_context",  # sum over prefill chunks of p + x: context read once per chunk [tokens]
    "coverage",  # expected share of routed experts that the step's tokens hit [1]
    "prefill_chunks",  # prefill chunks in the step
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTerm:
    """One kernel class.

    Parameters
    ----------
    name : str
        Class, such as ``"experts"``, ``"decode_attention"``, ``"all_reduce"``.
    compute_s, memory_s : tuple of float
        Seconds per unit of each feature on the two sides, in the order of `FEATURES` [s].
        A class with one side (a collective, a launch overhead) leaves the other at zero.
    """

    name: str
    compute_s: tuple[float, ...] = (0.0,) * len(FEATURES)
    memory_s: tuple[float, ...] = (0.0,) * len(FEATURES)

    def __post_init__(self) -> None:
        for side in (self.compute_s, self.memory_s):
            if len(side) != len(FEATURES) or min(side) < 0:
                raise SpecError(f"step term {self.name}: needs {len(FEATURES)} rates >= 0.")


def term(
    name: str,
    *,
    compute: dict[str, float] | None = None,
    memory: dict[str, float] | None = None,
) -> StepTerm:
    """Return a `StepTerm` from seconds by feature name [s]."""
    sides = []
    for side in (compute or {}, memory or {}):
        unknown = set(side) - set(FEATURES)
        if unknown:
            raise SpecError(f"step term {name}: unknown features {sorted(unknown)}.")
        sides.append(tuple(float(side.get(feature, 0.0)) for feature in FEATURES))
    return StepTerm(name=name, compute_s=sides[0], memory_s=sides[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLaw:
    """Seconds per engine step, for one engine replica (one data-parallel rank).

    Parameters
    ----------
    terms : tuple of StepTerm
        Kernel classes, run one after the other.
    experts, experts_per_token : int, float
        Routed experts and choices per token, for the coverage feature; 0 for a dense model.
        The choices are fractional where several ranks share the experts [1].
    expert_dispersion : float
        Squared coefficient of variation of expert popularity, 0 for uniform routing [1].
    verify_tokens : int
        Positions computed per decoding sequence and step: 1, or 1 + draft length [tokens].
    accepted_tokens : float
        Tokens a decoding sequence gains per step (acceptance length, bonus included) [tokens].
    max_batched_tokens : int
        Token budget of a step [tokens].
    max_sequences : int
        Running-request limit [1].
    mixed_steps : bool
        True where prefill chunks share a step with decodes; else a prefill runs alone.
    pipeline_stages : int
        Stages of a pipeline; a step is then a cycle with a microbatch in every stage [1].
    request_s : float
        Front-end seconds of a request before its first step: HTTP, tokens, admission [s].
    kinds : dict of str to str
        Worst kind of evidence behind each term.
    """

    terms: tuple[StepTerm, ...]
    experts: int = 0
    experts_per_token: float = 0.0
    expert_dispersion: float = 0.0
    verify_tokens: int = 1
    accepted_tokens: float = 1.0
    max_batched_tokens: int = 8192
    max_sequences: int = 256
    mixed_steps: bool = True
    pipeline_stages: int = 1
    request_s: float = 0.0
    kinds: dict[str, str] = field(default_factory=dict)
    _compute: FloatArray = field(init=False, repr=False, compare=False)
    _memory: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compute, memory = (
            np.asarray(sides, dtype=np.float64).reshape(-1, len(FEATURES))
            for sides in ([t.compute_s for t in self.terms], [t.memory_s for t in self.terms])
        )
        object.__setattr__(self, "_compute", compute)
        object.__setattr__(self, "_memory", memory)

    def coverage(self, tokens: npt.ArrayLike) -> FloatArray:
        """Expected share of routed experts that `tokens` hit [1].

        Notes
        -----
        Uniform routing: ``1 - (1 - k/E)^n``. With gamma-distributed popularity of squared
        coefficient of variation a, ``1 - (1 + a x)^(-1/a)`` with ``x = -n log(1 - k/E)``: a batch
        hits the popular experts again, and the rare ones late.
        """
        count = np.asarray(tokens, dtype=np.float64)
        if self.experts == 0:
            return np.zeros_like(count)
        miss = 1.0 - self.experts_per_token / self.experts
        if self.expert_dispersion == 0 or miss <= 0:
            return 1.0 - np.power(miss, count)
        hits = -self.expert_dispersion * math.log(miss)
        return 1.0 - np.power(1.0 + hits * count, -1.0 / self.expert_dispersion)

    def features(
        self,
        prefill_tokens: npt.ArrayLike = 0.0,
        prefill_start_tokens: npt.ArrayLike = 0.0,
        decode_sequences: npt.ArrayLike = 0.0,
        decode_context_tokens: npt.ArrayLike = 0.0,
    ) -> FloatArray:
        """Return the feature matrix of steps, shape (..., 8).

        Parameters
        ----------
        prefill_tokens : array_like
            New prompt tokens computed in the step [tokens].
        prefill_start_tokens : array_like
            Context already in cache before the chunk [tokens].
        decode_sequences : array_like
            Decoding sequences [1].
        decode_context_tokens : array_like
            Their mean context [tokens].
        """
        chunk, start, sequences, context = np.broadcast_arrays(
            np.asarray(prefill_tokens, dtype=np.float64),
            np.asarray(prefill_start_tokens, dtype=np.float64),
            np.asarray(decode_sequences, dtype=np.float64),
            np.asarray(decode_context_tokens, dtype=np.float64),
        )
        tokens = chunk + self.verify_tokens * sequences
        prefilling = (chunk > 0).astype(np.float64)
        phi = np.empty((*tokens.shape, len(FEATURES)))
        phi[..., 0] = tokens > 0
        phi[..., 1] = tokens
        phi[..., 2] = sequences
        phi[..., 3] = sequences * context
        phi[..., 4] = chunk * (start + 0.5 * chunk)
        phi[..., 5] = prefilling * (start + chunk)
        phi[..., 6] = self.coverage(tokens)
        phi[..., 7] = prefilling
        return phi

    def sides(self) -> tuple[FloatArray, FloatArray]:
        """Return the (compute, memory) rate matrices, each of shape (terms, 8) [s]."""
        return self._compute, self._memory

    def step_s(
        self,
        prefill_tokens: npt.ArrayLike = 0.0,
        prefill_start_tokens: npt.ArrayLike = 0.0,
        decode_sequences: npt.ArrayLike = 0.0,
        decode_context_tokens: npt.ArrayLike = 0.0,
    ) -> FloatArray:
        """Seconds of a step, for arguments as in `features` (broadcast together) [s]."""
        arguments = (
            prefill_tokens, prefill_start_tokens, decode_sequences, decode_context_tokens,
        )  # fmt: skip
        if all(isinstance(value, (int, float)) for value in arguments):
            row: FloatArray = np.array(self._scalar_features(*arguments))  # type: ignore[arg-type]
            one: FloatArray = np.maximum(self._compute @ row, self._memory @ row).sum()
            return one
        return self.seconds_of(self.features(*arguments))

    def _scalar_coverage(self, tokens: float) -> float:
        miss = 1.0 - self.experts_per_token / self.experts
        if self.expert_dispersion == 0 or miss <= 0:
            return float(1.0 - miss**tokens)
        hits = -self.expert_dispersion * math.log(miss)
        return float(1.0 - (1.0 + hits * tokens) ** (-1.0 / self.expert_dispersion))

    def seconds_of(self, features: FloatArray) -> FloatArray:
        """Seconds of steps given as feature rows, shape (..., 8): several prompts in one step [s].

        Notes
        -----
        The sum over terms of ``max(compute . phi, memory . phi)``; features of several chunks in
        one step add up, except `step` and `coverage`.
        """
        rows = features.reshape(-1, len(FEATURES))
        total = np.empty(len(rows))
        compute, memory = self._compute.T.copy(), self._memory.T.copy()
        for first in range(0, len(rows), _BLOCK_ROWS):
            block = rows[first : first + _BLOCK_ROWS]
            np.maximum(block @ compute, block @ memory).sum(
                axis=-1, out=total[first : first + _BLOCK_ROWS]
            )
        return total.reshape(features.shape[:-1])

    def _scalar_features(
        self, chunk: float, start: float, sequences: float, context: float
    ) -> tuple[float, ...]:
        """The eight features of one step in plain floats, ten times faster than arrays."""
        tokens = chunk + self.verify_tokens * sequences
        covered = 0.0
        if self.experts:
            covered = self._scalar_coverage(tokens)
        prefilling = 1.0 if chunk > 0 else 0.0
        return (
            1.0 if tokens > 0 else 0.0,
            tokens,
            sequences,
            sequences * context,
            chunk * (start + 0.5 * chunk),
            prefilling * (start + chunk),
            covered,
            prefilling,
        )

    def breakdown(
        self,
        prefill_tokens: float = 0.0,
        prefill_start_tokens: float = 0.0,
        decode_sequences: float = 0.0,
        decode_context_tokens: float = 0.0,
    ) -> dict[str, dict[str, float | str]]:
        """Seconds of one step by term, and the side that binds each."""
        phi = self.features(
            prefill_tokens, prefill_start_tokens, decode_sequences, decode_context_tokens
        )
        compute, memory = self.sides()
        rows: dict[str, dict[str, float | str]] = {}
        for item, flop_s, byte_s in zip(self.terms, compute @ phi, memory @ phi, strict=True):
            bound = "compute" if flop_s >= byte_s else "memory"
            rows[item.name] = {"seconds": float(max(flop_s, byte_s)), "bound": bound}
        return rows


def raw_step_law(
    *,
    active_params: float,
    fixed_weight_bytes: float,
    expert_weight_bytes: float,
    experts: int,
    experts_per_token: int,
    flop_per_s: float,
    bytes_per_s: float,
    prefill_pair_flop: float,
    decode_pair_flop: float,
    kv_read_bytes_per_token: float,
    step_overhead_s: float,
    max_batched_tokens: int,
    verify_tokens: int = 1,
    accepted_tokens: float = 1.0,
    max_sequences: int = 256,
) -> StepLaw:
    """Return a single-roof law from raw coefficients (node totals, effective rates).

    Notes
    -----
    ``tau = max(FLOP / F, bytes / BW) + t0`` with
    ``FLOP = 2 P_a t + a_d v sum c + a_p sum x (p + x/2)`` and
    ``bytes = W_fix + W_exp (1 - (1 - k/E)^t) + kappa (sum c + sum (p + x))``.
    """
    roof = term(
        "roof",
        compute={
            "tokens": 2.0 * active_params / flop_per_s,
            "decode_context": decode_pair_flop * verify_tokens / flop_per_s,
            "prefill_pairs": prefill_pair_flop / flop_per_s,
        },
        memory={
            "step": fixed_weight_bytes / bytes_per_s,
            "coverage": expert_weight_bytes / bytes_per_s,
            "decode_context": kv_read_bytes_per_token / bytes_per_s,
            "prefill_context": kv_read_bytes_per_token / bytes_per_s,
        },
    )
    overhead = term("overhead", memory={"step": step_overhead_s})
    return StepLaw(
        terms=(roof, overhead),
        experts=experts if expert_weight_bytes else 0,
        experts_per_token=experts_per_token if expert_weight_bytes else 0,
        verify_tokens=verify_tokens,
        accepted_tokens=accepted_tokens,
        max_batched_tokens=max_batched_tokens,
        max_sequences=max_sequences,
    )
