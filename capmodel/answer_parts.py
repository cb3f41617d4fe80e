"""Parts of an answer: the cliff, hits by tier, ends of the evidence, the nearest measured case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cliff:
    """Smallest concurrency past the cliff and its interval; None where there is no cliff."""

    concurrency: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRate:
    """Token-weighted hit rates over prompts [1]; `hbm + offload = overall`."""

    hbm: float
    offload: float
    theoretical: float

    @property
    def overall(self) -> float:
        """Share found in any tier [1]."""
        return self.hbm + self.offload


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetEnd:
    """The operating point with the live tokens of a session at one end of their evidence.

    Parameters
    ----------
    tree_tokens_mean : float
        Live tokens of a session [tokens].
    hit_rate : float
        Long-run overall hit rate [1].
    hour_hit_rate : float
        Hit rate of the median benchmark hour [1].
    p_collapsed : float
        Share of hours with under half of the theoretical hits [1].
    """

    tree_tokens_mean: float
    hit_rate: float
    hour_hit_rate: float
    p_collapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestCase:
    """The closest measured point and how the model does on it."""

    source: str
    description: str
    metric: str
    measured: float
    predicted: float

    @property
    def relative_error(self) -> float:
        """Predicted over measured, less one [1]."""
        return self.predicted / self.measured - 1.0
