"""Speculative decoding: accepted length as data, what drafting and verifying cost, when it pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..catalog import efficiencies
from ..errors import SpecError, nearest_names
from ..memory.drafts import draft_layers
from ..memory.engine_defaults import is_before, version_number
from ..memory.kv_layout import cache_parts, kv_bytes_per_token
from ..spec.deployment import Deployment, Speculation
from ..spec.model import Model
from .prefill import decode_step_s
from .step_law import StepLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLength:
    """Tokens a sequence gains per step, the bonus token counted.

    Parameters
    ----------
    value, low, high : float
        Length and its interval [tokens].
    kind, source : str
        Evidence.
    """

    value: float
    low: float
    high: float
    kind: str
    source: str


def draft(name: str) -> Mapping[str, Any]:
    """Return the data of a draft: layers, passes per step, acceptance curves.

    Raises
    ------
    SpecError
        If no draft of that name is known.
    """
    table = efficiencies("speculation")
    known: dict[str, Any] = table["drafts"]
    key = table["aliases"].get(name.casefold(), name.casefold())
    if key not in known:
        raise SpecError(
            f"no draft called {name!r}; known are {', '.join(known)}.",
            field="speculate",
            nearest=nearest_names(key, known),
        )
    found: Mapping[str, Any] = known[key]
    return found


def accepted_length(speculation: Speculation) -> AcceptedLength:
    """Accepted length of a draft at its depth, from the nearest measured depth.

    Notes
    -----
    Beyond the deepest measured depth the curve is taken flat: later positions are hardly accepted.
    """
    curve = draft(speculation.name)[speculation.acceptance]
    depths = sorted(depth for depth in curve if isinstance(depth, int))
    depth = max(d for d in depths if d <= max(speculation.draft_tokens, depths[0]))
    value, low, high = curve[depth]
    return AcceptedLength(
        value=value, low=low, high=high, kind=curve["kind"], source=curve["source"]
    )


def check_supported(deployment: Deployment) -> None:
    """Refuse a draft that the engine's build cannot run in this layout.

    Raises
    ------
    SpecError
        Naming the change that lifted the limit.
    """
    speculation = deployment.speculation
    if speculation is None:
        return
    for rule in efficiencies("speculation")["refusals"]:
        applies = (
            rule["engine"] == deployment.engine
            and rule["draft"] == speculation.name.casefold()
            and getattr(deployment, rule["layout"]) > 1
        )
        if applies and _refused(rule, deployment.engine_version):
            build = deployment.engine_version or "day-0"
            raise SpecError(
                f"{deployment.engine} {build} does not run {speculation.name} with "
                f"{rule['layout']} {getattr(deployment, rule['layout'])}; "
                f"lifted by {rule['lifted_by']}: give a later engine version or drop the draft.",
                field="speculate",
            )


def _refused(rule: Mapping[str, Any], version: str) -> bool:
    if "only" in rule:
        return version_number(version) == version_number(rule["only"])
    # The reference build of the catalog is the day-0 one.
    return version in ("", "day-0") or is_before(version, rule["before"])


def draft_passes(speculation: Speculation) -> int:
    """Draft forward passes per step: one for a parallel draft, else one per token [1]."""
    return 1 if draft(speculation.name)["passes"] == "one" else speculation.draft_tokens


def speculation_gain(
    plain: StepLaw, speculative: StepLaw, sequences: float, context_tokens: float
) -> float:
    """Output rate with drafts over without, both at the same batch and nothing else running [1].

    Notes
    -----
    ``S = AL / r``, r the verify-and-draft step over the plain step: memory-bound r is little above
    one, saturated r tends to 1 + K.
    """
    ratio = decode_step_s(speculative, sequences, context_tokens) / decode_step_s(
        plain, sequences, context_tokens
    )
    return float(speculative.accepted_tokens / plain.accepted_tokens / ratio)


def break_even_sequences(
    plain: StepLaw, speculative: StepLaw, context_tokens: float
) -> float | None:
    """Smallest batch at which drafting stops paying, None where it pays up to the limit [1]."""
    low, high = 1.0, float(min(plain.max_sequences, speculative.max_sequences))
    if speculation_gain(plain, speculative, low, context_tokens) <= 1.0:
        return low
    if speculation_gain(plain, speculative, high, context_tokens) > 1.0:
        return None
    while high - low > 0.5:
        middle = 0.5 * (low + high)
        if speculation_gain(plain, speculative, middle, context_tokens) > 1.0:
            low = middle
        else:
            high = middle
    return high


def draft_kv_share(model: Model, deployment: Deployment) -> float:
    """Share of a token's cached bytes on one rank that belongs to the draft [1].

    Notes
    -----
    Kimi K3 with DSpark: 5 of 29 latent layers, 17%; the pool loses 22-25% of its tokens, because
    the recurrent state that is kept for rejected positions comes out of it too.
    """
    layers = draft_layers(model, deployment)
    if layers is None:
        return 0.0
    parts = cache_parts(layers.mixer, model, deployment)
    added = layers.layers * sum(part.bytes_per_token for part in parts if part.grows)
    return added / (added + kv_bytes_per_token(model, deployment))
