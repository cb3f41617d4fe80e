"""Compile a kernel when numba is there, run it as plain Python when it is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def has_compiler() -> bool:
    """Return whether numba is installed; it is imported only when a kernel first runs."""
    from importlib.util import find_spec

    return find_spec("numba") is not None


@cache
def _jit(kernel: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    try:
        jitted: Callable[..., Any] = numba.njit(cache=True, nogil=True)(kernel)
    except RuntimeError:
        # Nowhere to keep the compiled code: compile again in every process.
        jitted = numba.njit(nogil=True)(kernel)
    return jitted


def compiled(kernel: Callable[..., Any], *, plain: bool = False) -> Callable[..., Any]:
    """Return the compiled kernel, or the same function where numba is missing or `plain` is set."""
    if plain or not has_compiler():
        return kernel
    return _jit(kernel)
