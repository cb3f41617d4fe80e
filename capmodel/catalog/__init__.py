"""Catalog: data with sources, one file per item, loaded only when asked for."""

from __future__ import annotations

from .loader import (
    Bundle,
    accelerator,
    efficiencies,
    gpu_hour_usd,
    model,
    names,
    node,
    raw_item,
    read_mapping,
    reference_build,
    tariff,
    workload,
    workload_from_mapping,
)

__all__ = [
    "Bundle",
    "accelerator",
    "efficiencies",
    "gpu_hour_usd",
    "model",
    "names",
    "node",
    "raw_item",
    "read_mapping",
    "reference_build",
    "tariff",
    "workload",
    "workload_from_mapping",
]
