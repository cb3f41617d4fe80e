"""A workload: the moments and laws of what sessions ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from ..errors import SpecError
from .distributions import LognormalMixture


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Sessions of turns, each turn one model request.

    Two sizes are kept apart: `request_tokens` drives prefill work and billing, `tree_tokens`
    drives occupancy, because a session's sub-agents and retained branches live inside it.

    Parameters
    ----------
    name : str
        Catalog name or file.
    request_tokens_mean, request_tokens_cv : float
        Prompt of a request: mean [tokens] and coefficient of variation [1].
    tree_tokens_mean, tree_tokens_cv : float
        Live tokens of a session tree: mean [tokens] and coefficient of variation [1].
    output_tokens_mean, output_tokens_cv : float
        Output of a request [tokens], [1].
    turns_mean : float
        Requests per session [1].
    theoretical_hit_rate : float
        Token-weighted share of prompts that an infinite cache finds [1].
    think_time : LognormalMixture
        Gap from response end to the next request, under its cap [s].
    turns_cv : float
        Coefficient of variation of the requests per session; 1 for geometric [1].
    new_tokens_cv : float
        Coefficient of variation of the tokens an infinite cache would not find [1].
    shared_prefix_tokens : float
        Prefix that all sessions share, 0 for none [tokens].
    max_context_tokens : float
        Longest prompt kept in the workload [tokens].
    intervals : dict of str to (low, high)
        Evidence interval of a field.
    provenance : dict of str to str
        Source and kind per field.
    """

    name: str
    request_tokens_mean: float
    request_tokens_cv: float
    tree_tokens_mean: float
    tree_tokens_cv: float
    output_tokens_mean: float
    output_tokens_cv: float
    turns_mean: float
    theoretical_hit_rate: float
    think_time: LognormalMixture
    turns_cv: float = 1.0
    new_tokens_cv: float = 1.0
    shared_prefix_tokens: float = 0.0
    max_context_tokens: float = math.inf
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("request_tokens_mean", "tree_tokens_mean", "output_tokens_mean"):
            value = getattr(self, name)
            if not (value >= 1 and math.isfinite(value)):
                raise SpecError(f"{name} must be at least 1 and finite, got {value}.", field=name)
        for name in (
            "request_tokens_cv",
            "tree_tokens_cv",
            "output_tokens_cv",
            "new_tokens_cv",
            "turns_cv",
        ):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise SpecError(f"{name} must not be negative, got {value}.", field=name)
        if not (self.turns_mean >= 1 and math.isfinite(self.turns_mean)):
            raise SpecError("turns_mean must be at least 1.", field="turns_mean")
        if not 0 <= self.theoretical_hit_rate < 1:
            raise SpecError("theoretical_hit_rate must be in [0, 1).", field="theoretical_hit_rate")
        if not 0 <= self.shared_prefix_tokens <= self.request_tokens_mean:
            raise SpecError(
                "shared_prefix_tokens must lie between 0 and the mean prompt.",
                field="shared_prefix_tokens",
            )

    def with_overrides(self, **changes: float | None) -> Workload:
        """Return a copy with some fields replaced; a new mean prompt rescales the tree with it.

        `think_time_cap_s` replaces the cap of the gap law; None values are ignored.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        cap = given.pop("think_time_cap_s", None)
        if "context_tokens_mean" in given:
            given["request_tokens_mean"] = given.pop("context_tokens_mean")
        if "request_tokens_mean" in given and "tree_tokens_mean" not in given:
            ratio = given["request_tokens_mean"] / self.request_tokens_mean
            given["tree_tokens_mean"] = self.tree_tokens_mean * ratio
        if cap is not None and not cap >= 0:
            raise SpecError(
                f"think_time_cap_s must not be negative, got {cap}.", field="think_time_cap_s"
            )
        think_time = self.think_time if cap is None else self.think_time.capped(cap)
        kept = {name: span for name, span in self.intervals.items() if name not in given}
        return replace(self, think_time=think_time, intervals=kept, **given)  # type: ignore[arg-type]

    @property
    def ended_tokens_mean(self) -> float:
        """Mean tokens that a session leaves behind when it ends [tokens].

        With contexts that grow turn by turn, a random turn has age ``(E[K^2]/E[K] + 1)/2`` while
        the last has age K, so the ratio of the two sizes is ``2/(1 + cv^2)``; 1 if geometric.
        """
        return self.tree_tokens_mean * 2.0 / (1.0 + self.turns_cv**2)

    def at_scale(self, scale: float) -> Workload:
        """Return the workload of sessions whose contexts are all `scale` times as long.

        New tokens per turn and the shared prefix stay; the reusable part of a prompt and the live
        tokens of a session scale.
        """
        new = self.request_tokens_mean * (1.0 - self.theoretical_hit_rate)
        reusable = max(self.request_tokens_mean - new - self.shared_prefix_tokens, 0.0)
        prompt = max(self.request_tokens_mean + (scale - 1.0) * reusable, 1.0)
        return replace(
            self,
            request_tokens_mean=prompt,
            theoretical_hit_rate=max(1.0 - new / prompt, 0.0),
            tree_tokens_mean=max(self.tree_tokens_mean * scale, 1.0),
        )
