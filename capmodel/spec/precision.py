"""Number formats: bytes per element, scales included, and the unit that computes with them."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SpecError, nearest_names


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """A storage format.

    Parameters
    ----------
    name : str
        The field's usual name.
    bytes_per_element : float
        Storage including group scales [bytes].
    compute : str
        Matrix-unit path where the accelerator has it: ``"bf16"``, ``"fp8"`` or ``"fp4"``.
    """

    name: str
    bytes_per_element: float
    compute: str


# Scales: fp8 one FP32 per 128x128 block; ue8m0 one byte per block; fp4/int4 per group of 16 or 32.
FORMATS: dict[str, NumberFormat] = {
    fmt.name: fmt
    for fmt in (
        NumberFormat(name="fp32", bytes_per_element=4.0, compute="bf16"),
        NumberFormat(name="bf16", bytes_per_element=2.0, compute="bf16"),
        NumberFormat(name="fp8", bytes_per_element=1.0 + 4 / 128**2, compute="fp8"),
        NumberFormat(name="fp8_ue8m0", bytes_per_element=1.0 + 1 / 128**2, compute="fp8"),
        NumberFormat(name="int8", bytes_per_element=1.0, compute="fp8"),
        NumberFormat(name="mxfp8", bytes_per_element=1.0 + 1 / 32, compute="fp8"),
        NumberFormat(name="int4", bytes_per_element=0.5 + 2 / 32, compute="bf16"),
        NumberFormat(name="int4_g128", bytes_per_element=0.5 + 2.5 / 128, compute="bf16"),
        NumberFormat(name="mxfp4", bytes_per_element=0.5 + 1 / 32, compute="fp4"),
        NumberFormat(name="nvfp4", bytes_per_element=0.5 + 1 / 16, compute="fp4"),
    )
}


def number_format(name: str) -> NumberFormat:
    """Return the format called `name`.

    Raises
    ------
    SpecError
        If the name is unknown.
    """
    if name not in FORMATS:
        raise SpecError(
            f"unknown number format {name!r}.", field="format", nearest=nearest_names(name, FORMATS)
        )
    return FORMATS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPrecision:
    """Which tensor class is stored in which format (names of `FORMATS`).

    Parameters
    ----------
    routed_experts, shared_experts, dense_feed_forward, attention, latent, head : str
        Format of each class of linear layer; embeddings, routers and norms are bf16 (or fp32).
    """

    routed_experts: str = "bf16"
    shared_experts: str = "bf16"
    dense_feed_forward: str = "bf16"
    attention: str = "bf16"
    latent: str = "bf16"
    head: str = "bf16"

    @classmethod
    def uniform(cls, name: str) -> WeightPrecision:
        """Return the layout of a checkpoint whose every linear layer but the head is `name`."""
        number_format(name)
        return cls(
            routed_experts=name,
            shared_experts=name,
            dense_feed_forward=name,
            attention=name,
            latent=name,
        )
