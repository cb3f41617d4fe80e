"""Packages that can be called: `cm.memory(s)` answers, `capmodel.memory` still holds its modules.

A stage's package and the function people call share the best name for both. Python binds the
package over any function of that name as soon as one of its modules is imported, so the package
itself answers the call.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module, function = self.__dict__["_answer"]
        return getattr(importlib.import_module(module), function)(*args, **kwargs)


def answer_calls(package: str, module: str, function: str) -> None:
    """Make calls to `package` go to `module.function`, imported at the first call."""
    loaded = sys.modules[package]
    loaded.__dict__["_answer"] = (module, function)
    loaded.__class__ = _CallablePackage
