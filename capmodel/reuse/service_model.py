"""How long a request is in service, for the purposes of reuse."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SpecError
from ..units import parse_quantity

KINDS = ("none", "recorded", "prefill")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceModel:
    """Service of the reference replays.

    Parameters
    ----------
    kind : {"none", "recorded", "prefill"}
        No time at all; the times in the table; or one FIFO prefill server, then a time per
        output token, so that hits shorten the prefill.
    prefill_tokens_per_s : float
        Rate of the prefill server [tokens/s].
    output_token_s : float
        Time per output token [s]; 0.02 in the reference replays.
    """

    kind: str = "none"
    prefill_tokens_per_s: float = 0.0
    output_token_s: float = 0.02

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SpecError(f"unknown service {self.kind!r}.", field="service", nearest=KINDS)
        if self.kind == "prefill" and not self.prefill_tokens_per_s > 0:
            raise SpecError("a prefill server needs a positive rate.", field="service")
        if not self.output_token_s >= 0:
            raise SpecError("output_token_s must not be negative.", field="output_token_s")

    @property
    def has_feedback(self) -> bool:
        """Whether hits change the timing."""
        return self.kind == "prefill"


def parse_service(text: str | ServiceModel) -> ServiceModel:
    """Return the service that ``none``, ``recorded`` or ``prefill:15000`` names [tokens/s]."""
    if isinstance(text, ServiceModel):
        return text
    kind, colon, rate = text.partition(":")
    if kind == "prefill":
        if not colon:
            raise SpecError("service: write the rate, as in prefill:15000.", field="service")
        return ServiceModel(
            kind="prefill", prefill_tokens_per_s=parse_quantity(rate, "tokens/s", "service")
        )
    if colon:
        raise SpecError(f"service: {kind!r} takes no rate.", field="service", nearest=KINDS)
    return ServiceModel(kind=kind)
