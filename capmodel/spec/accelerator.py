"""An accelerator: rates, memory, links, price, each in SI."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import SpecError


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One GPU (or comparable part), nominal dense rates.

    Parameters
    ----------
    name, vendor : str
        Catalog name and maker.
    flop_per_s : dict of str to float
        Dense peak by compute path, keys ``"bf16"``, ``"fp8"``, ``"fp4"`` [FLOP/s].
    hbm_bytes : float
        Memory the driver reports [bytes].
    hbm_bytes_per_s : float
        Peak memory bandwidth [bytes/s].
    scale_up_bytes_per_s : float
        One-way scale-up link rate per GPU [bytes/s].
    scale_up_domain : int
        GPUs that share the scale-up link [1].
    host_bytes_per_s : float
        One-way rate of the link to host memory [bytes/s].
    nic_bytes_per_s : float
        One-way scale-out rate per GPU, 0 where unknown [bytes/s].
    gpus_per_node : int
        GPUs of a usual node [1].
    host_dram_bytes : float
        Host memory of a usual node, 0 where unknown [bytes].
    power_w : float
        All-in power per GPU, 0 where unknown [W].
    gpu_hour_usd : dict of str to float
        Price per GPU-hour by basis [USD].
    default_price_basis : str
        Key of `gpu_hour_usd` used where the user gives none.
    provenance : dict of str to str
        Source per group of values.
    estimated : bool
        True where a rate is an estimate or the part is hypothetical.
    """

    name: str
    vendor: str
    flop_per_s: dict[str, float]
    hbm_bytes: float
    hbm_bytes_per_s: float
    scale_up_bytes_per_s: float
    scale_up_domain: int
    host_bytes_per_s: float
    nic_bytes_per_s: float = 0.0
    gpus_per_node: int = 8
    host_dram_bytes: float = 0.0
    power_w: float = 0.0
    gpu_hour_usd: dict[str, float] = field(default_factory=dict)
    default_price_basis: str = ""
    provenance: dict[str, str] = field(default_factory=dict)
    estimated: bool = False

    def __post_init__(self) -> None:
        for name in ("hbm_bytes", "hbm_bytes_per_s"):
            if not getattr(self, name) > 0:
                raise SpecError(f"{self.name}: {name} must be positive.", field=name)
        if "bf16" not in self.flop_per_s:
            raise SpecError(f"{self.name}: needs a bf16 rate.", field="flop_per_s")

    def peak_flop_per_s(self, path: str) -> float:
        """Dense peak of a compute path, falling back to the next wider one it has [FLOP/s]."""
        order = {"fp4": ("fp4", "fp8", "bf16"), "fp8": ("fp8", "bf16"), "bf16": ("bf16",)}
        return next(self.flop_per_s[p] for p in order[path] if p in self.flop_per_s)
