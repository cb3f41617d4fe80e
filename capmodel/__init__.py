"""capmodel: sessions a node may hold, KV cache to offload, nodes needed, and what a token costs.

>>> import capmodel as cm
>>> s = cm.Scenario(model="kimi-k3", node="8xB300", workload="agentic-coding")
>>> cm.memory(s).fits
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .answer import estimate as estimate
    from .answer import sweep as sweep
    from .calibrate.calibration import calibrate as calibrate
    from .errors import CapmodelError as CapmodelError
    from .errors import InfeasibleError as InfeasibleError
    from .errors import IngestError as IngestError
    from .errors import SpecError as SpecError
    from .optimize.planner import optimize as optimize
    from .pipeline import memory as memory
    from .scenario import Scenario as Scenario
    from .scenario import load_scenario as load_scenario
    from .validate.validation import validate as validate

# Public name -> module; a module is imported when its first name is used.
_PUBLIC = {
    "CapmodelError": "errors",
    "InfeasibleError": "errors",
    "IngestError": "errors",
    "Scenario": "scenario",
    "SpecError": "errors",
    "calibrate": "calibrate.calibration",
    "estimate": "answer",
    "load_scenario": "scenario",
    "memory": "pipeline",
    "optimize": "optimize.planner",
    "sweep": "answer",
    "validate": "validate.validation",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'capmodel' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_PUBLIC[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
