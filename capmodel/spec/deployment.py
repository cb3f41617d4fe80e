"""A deployment: how an engine lays one model over a node."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import SpecError, nearest_names

ENGINES = ("vllm", "sglang", "trtllm", "atom")
OFFLOAD_TIERS = ("dram", "ssd", "remote")
KV_DTYPES = ("auto", "bf16", "fp8")
WEIGHT_FORMATS = ("auto", "bf16", "fp8", "int4", "mxfp4", "nvfp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """A KV tier behind HBM: write-through and inclusive, LRU.

    Parameters
    ----------
    tier : {"dram", "ssd", "remote"}
        Where it lives.
    bytes : float
        Size per node [bytes].
    bytes_per_s : float, optional
        Load rate per GPU, None for the accelerator's measured host link [bytes/s].
    """

    tier: str
    bytes: float
    bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if self.tier not in OFFLOAD_TIERS:
            raise SpecError(
                f"offload tier {self.tier!r} is unknown.",
                field="offload",
                nearest=nearest_names(self.tier, OFFLOAD_TIERS) or OFFLOAD_TIERS,
            )
        if not (self.bytes > 0 and math.isfinite(self.bytes)):
            raise SpecError("offload: size must be positive and finite.", field="offload")
        if self.bytes_per_s is not None and not self.bytes_per_s > 0:
            raise SpecError("offload: bandwidth must be positive.", field="offload_bandwidth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding with a named draft.

    Parameters
    ----------
    name : str
        Draft, such as ``"dspark"``, ``"mtp"``, ``"eagle3"``.
    draft_tokens : int
        Tokens drafted per step, K [tokens].
    acceptance : str
        ``"golden"`` for the published curve, ``"real"`` for what long agentic prompts measure.
    """

    name: str
    draft_tokens: int
    acceptance: str = "golden"

    def __post_init__(self) -> None:
        if self.draft_tokens < 1:
            raise SpecError("speculation: needs at least one draft token.", field="speculate")
        if self.acceptance not in ("golden", "real"):
            raise SpecError("speculation: acceptance is 'golden' or 'real'.", field="speculate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Engine, parallel layout, precision and limits of one replica.

    Parameters
    ----------
    engine : {"vllm", "sglang", "trtllm", "atom"}
        Serving engine.
    engine_version : str
        Build, empty for the catalog's reference build.
    tp, pp, dp, ep, dcp : int
        Tensor, pipeline, data (attention), expert and decode-context parallel degrees [1].
        The replica uses ``tp * pp * dp`` accelerators; ``ep`` and ``dcp`` divide the same ranks.
    weights : str
        ``"auto"`` for the checkpoint's own layout, or one format for every linear layer.
    kv_dtype : {"auto", "bf16", "fp8"}
        Format of cached keys and values; ``"auto"`` is bf16.
    gpu_memory_utilization : float
        Share of HBM the engine may use [1].
    available_kv_gib : float, optional
        Overrides the computed KV pool per GPU [GiB].
    max_model_len : int, optional
        Longest request; None for the model's own [tokens].
    max_num_seqs : int, optional
        Running-request limit; None for the engine's default [1].
    max_num_batched_tokens : int, optional
        Tokens per step; None for the engine's default [tokens].
    prefix_caching : bool
        Whether finished requests stay cached for reuse.
    offload : Offload, optional
        The tier behind HBM.
    speculation : Speculation, optional
        Draft and depth.
    scheduling : {"first-come"}
        Order in which waiting requests start; other policies are refused, not approximated.
    """

    engine: str = "vllm"
    engine_version: str = ""
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    dcp: int = 1
    weights: str = "auto"
    kv_dtype: str = "auto"
    gpu_memory_utilization: float = 0.90
    available_kv_gib: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    prefix_caching: bool = True
    offload: Offload | None = None
    speculation: Speculation | None = None
    scheduling: str = "first-come"

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dp", "ep", "dcp"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} must be at least 1.", field=name)
        _one_of("engine", self.engine, ENGINES)
        _one_of("weights", self.weights, WEIGHT_FORMATS)
        _one_of("kv_dtype", self.kv_dtype, KV_DTYPES)
        if not 0 < self.gpu_memory_utilization <= 1:
            raise SpecError(
                f"gpu_memory_utilization must be in (0, 1], got {self.gpu_memory_utilization}.",
                field="gpu_memory_utilization",
            )
        if self.available_kv_gib is not None and not (
            self.available_kv_gib > 0 and math.isfinite(self.available_kv_gib)
        ):
            raise SpecError(
                f"available_kv_gib must be positive and finite, got {self.available_kv_gib}.",
                field="available_kv_gib",
            )
        for name in ("max_model_len", "max_num_seqs", "max_num_batched_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} must be at least 1, got {value}.", field=name)
        if self.scheduling != "first-come":
            raise SpecError(
                f"scheduling {self.scheduling!r} is not modelled by the closed network, only "
                "first-come is; `capmodel.simulate` also has longest-prefix-first.",
                field="scheduling",
                nearest=("first-come",),
            )
        if self.tp % self.dcp:
            raise SpecError(f"dcp {self.dcp} must divide tp {self.tp}.", field="dcp")

    @property
    def gpus(self) -> int:
        """Accelerators of one replica [1]."""
        return self.tp * self.pp * self.dp


def _one_of(field: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SpecError(
            f"{field} {value!r} is unknown; one of {', '.join(known)}.",
            field=field,
            nearest=nearest_names(value, known),
        )
