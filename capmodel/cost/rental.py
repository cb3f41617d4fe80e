"""Dollars per hour of one engine replica."""

from __future__ import annotations

from ..units import GB


def usd_per_hour(
    gpus: int, gpu_hour_usd: float, dram_bytes: float = 0.0, dram_gb_hour_usd: float = 0.0
) -> float:
    """Rent of a replica: accelerators plus any offload memory billed on top [USD/h].

    Parameters
    ----------
    gpus : int
        Accelerators of the replica [1].
    gpu_hour_usd : float
        Price of one [USD/h].
    dram_bytes : float
        Offload memory of the replica [bytes].
    dram_gb_hour_usd : float
        Price of offload memory beyond the node's rent [USD per GB-hour].

    Examples
    --------
    >>> round(usd_per_hour(8, 2.26), 2)
    18.08
    """
    return gpus * gpu_hour_usd + dram_bytes / GB * dram_gb_hour_usd
