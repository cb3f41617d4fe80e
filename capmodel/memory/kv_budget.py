"""The result of the memory stage: what one engine replica has left for cached tokens."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from ..errors import MissingExtraError
from . import ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class KvBudget:
    """What one engine replica has left for cached tokens; tokens count all its DP ranks.

    Parameters
    ----------
    model, node : str
        Names.
    fits : bool
        Whether the engine starts.
    fit_is_certain : bool
        Whether both ends of the available memory's range give that verdict.
    shortfall_bytes_per_gpu : float
        Bytes missing on the tightest rank, 0 where it fits [bytes].
    hbm_bytes_per_gpu, budget_bytes_per_gpu : float
        Memory of one GPU, and the engine's share of it [bytes].
    weights_bytes_per_gpu, overhead_bytes_per_gpu, available_kv_bytes_per_gpu : float
        Parts of the engine's share of HBM on the tightest rank [bytes].
    kv_bytes_per_token : float
        Bytes each further token takes on one rank [bytes].
    state_bytes_per_sequence : float
        Fixed bytes per sequence on one rank: states, windows, chunks [bytes].
    block_tokens, kv_blocks, block_bytes : int, int, float
        Pool geometry of one rank [tokens], [1], [bytes].
    kv_tokens : int
        Nominal tokens, as the engine would log them [tokens].
    usable_kv_tokens : int
        Tokens left for contexts at `concurrency` live requests [tokens].
    max_concurrency : float
        Requests of maximal length that fit at once [1].
    max_model_len : int
        Longest request, as served [tokens].
    blocks_per_request, resident_blocks_per_live_request, blocks_per_resume_point : int
        Blocks at maximal length; fixed per live request; per retained prefix of a hybrid [1].
    tokens_per_live_request, tokens_per_resume_point : float
        The same two in tokens of the pool, half a block per context included [tokens].
    kv_replication : float
        Copies of one token's cache over the ranks of a replica [1].
    unique_kv_bytes_per_token, offload_bytes_per_token : float
        One copy of a token; what it costs in host memory per node, copies included [bytes].
    offload_bytes_per_resume_point : float
        Host memory per node of the recurrent states kept with one offloaded prefix [bytes].
    total_params, active_params : int
        Parameters; active without the input embedding [1].
    concurrency : int
        Live requests that `usable_kv_tokens` assumes [1].
    evidence : str
        Kind of the largest part: given for a pool that was given, else that of the weights,
        measured for a recorded build and derived from the architecture.
    evidence_by_part : dict of str to str
        Kind of each part: weights, overhead, pool, blocks.
    warnings : tuple of str
        Limits that are not arithmetic.
    weights_parts_bytes, overhead_parts_bytes : dict of str to float
        The same by tensor class and by cause [bytes].
    intervals : dict of str to (float, float)
        Ranges by field name.
    """

    model: str
    node: str
    fits: bool
    fit_is_certain: bool
    shortfall_bytes_per_gpu: float
    hbm_bytes_per_gpu: float
    budget_bytes_per_gpu: float
    weights_bytes_per_gpu: float
    overhead_bytes_per_gpu: float
    available_kv_bytes_per_gpu: float
    kv_bytes_per_token: float
    state_bytes_per_sequence: float
    block_tokens: int
    kv_blocks: int
    block_bytes: float
    kv_tokens: int
    usable_kv_tokens: int
    max_concurrency: float
    max_model_len: int
    blocks_per_request: int
    resident_blocks_per_live_request: int
    blocks_per_resume_point: int
    tokens_per_live_request: float
    tokens_per_resume_point: float
    kv_replication: float
    unique_kv_bytes_per_token: float
    offload_bytes_per_token: float
    offload_bytes_per_resume_point: float
    total_params: int
    active_params: int
    concurrency: int
    evidence: str
    evidence_by_part: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    weights_parts_bytes: dict[str, float] = field(default_factory=dict)
    overhead_parts_bytes: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["warnings"] = list(self.warnings)
        values["intervals"] = {k: list(v) for k, v in self.intervals.items()}
        return values

    def __str__(self) -> str:
        return ledger.text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_frame(self) -> Any:
        """Return the ledger of one GPU as a pandas frame: part, bytes, share of HBM.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "frames") from error
        parts = ledger.rows(self)
        frame = pd.DataFrame(parts, columns=["part", "bytes"])
        frame["share"] = frame["bytes"] / self.hbm_bytes_per_gpu
        return frame

    def plot(self, ax: Any = None) -> Any:
        """Draw where each GiB of one GPU goes, and return the axes."""
        return ledger.bar(self, ax)
