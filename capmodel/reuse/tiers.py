"""Several tiers: what an offload tier adds to the hits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import SpecError

POLICIES = ("inclusive", "exclusive")


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredHitRate:
    """Token-weighted hit rates over prompts [1]; they add up to `overall`."""

    hbm: float
    offload: float

    @property
    def overall(self) -> float:
        """Share found in any tier [1]."""
        return self.hbm + self.offload


def reachable_tokens(hbm_tokens: float, offload_tokens: float, policy: str = "inclusive") -> float:
    """Tokens that both tiers keep apart [tokens].

    Notes
    -----
    A write-through tier holds a copy of everything above it: the larger tier decides, not the
    sum. A victim tier holds only what fell out: the tiers add.
    """
    if policy not in POLICIES:
        raise SpecError(f"unknown tier policy {policy!r}.", field="policy", nearest=POLICIES)
    if min(hbm_tokens, offload_tokens) < 0:
        raise SpecError("a tier cannot hold a negative number of tokens.")
    if policy == "exclusive":
        return hbm_tokens + offload_tokens
    return max(hbm_tokens, offload_tokens)


def tiered_hit_rate(
    hit_rate: Callable[[float], float],
    hbm_tokens: float,
    offload_tokens: float,
    policy: str = "inclusive",
) -> TieredHitRate:
    """Return the hits by tier, given the hit rate as a function of capacity [tokens].

    Exact for: LRU in both tiers over the same requests, by inclusion.
    """
    overall = hit_rate(reachable_tokens(hbm_tokens, offload_tokens, policy))
    hbm = min(hit_rate(hbm_tokens), overall)
    return TieredHitRate(hbm=hbm, offload=overall - hbm)
