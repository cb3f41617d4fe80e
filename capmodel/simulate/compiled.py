"""One decorator: compiled where Numba is installed, the same function in plain Python where not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])

KERNEL_FILES = ("state.py", "memory.py", "steps.py", "sessions.py", "scheduler.py", "engine.py")

try:
    from numba import njit as _njit
except ImportError:
    _njit = None


def compiled(function: F) -> F:
    """Return `function` compiled without Python objects, or as it is."""
    return function if _njit is None else cast(F, _njit(nogil=True)(function))


def compiled_and_kept(function: F) -> F:
    """Return `function` compiled, with the machine code kept on disk between processes."""
    if _njit is None:
        return function
    try:
        return cast(F, _njit(nogil=True, cache=True)(function))
    except RuntimeError:
        # Nowhere to keep machine code: compile again in every process.
        return compiled(function)


def fingerprint() -> int:
    """Hash of the kernel's sources: part of the key under which machine code is kept [1]."""
    digest = hashlib.sha256()
    for name in KERNEL_FILES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")
