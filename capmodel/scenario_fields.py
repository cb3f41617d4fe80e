"""Kinds of the fields of a scenario: what people write, checked and made uniform once."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

from .errors import SpecError

# Beyond these a value is a slip of the keyboard; no product of them overflows.
MOST_NODES = 4096
MOST_TOKENS = 1e12
MOST_USD = 1e9

SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def text(name: str, value: Any) -> str:
    """Return a text; numbers become the text they were written as."""
    if isinstance(value, str):
        return value
    if name == "engine_version" and _is_number(value):
        return str(value)
    raise _wrong(name, value, "text")


def switch(name: str, value: Any) -> bool:
    """Return a truth value, written as such or as on or off."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in SWITCH:
        return SWITCH[value.strip().lower()]
    raise _wrong(name, value, "on or off")


def number(name: str, value: Any, least: float = 0.0, most: float = math.inf) -> float:
    """Return a number between two bounds, also from a text such as ``1e4``."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise _wrong(name, value, "a number") from None
    if not _is_number(value) or math.isnan(value):
        raise _wrong(name, value, "a number")
    if not least <= value <= most or (math.isinf(value) and name != "think_time_cap_s"):
        raise _wrong(name, value, f"a finite number from {least:g} to {most:g}")
    return float(value)


def whole(name: str, value: Any, most: float = MOST_TOKENS) -> int:
    """Return a whole number of at least 1."""
    found = number(name, value, least=1.0, most=most)
    if found != int(found):
        raise _wrong(name, value, "a whole number")
    return int(found)


def quantity(name: str, value: Any) -> str | float:
    """Return a number or a text with a unit."""
    return value if isinstance(value, str) else number(name, value)


def _nodes(name: str, value: Any) -> int:
    return whole(name, value, MOST_NODES)


def _usd(name: str, value: Any) -> float:
    return number(name, value, most=MOST_USD)


def _tokens(name: str, value: Any) -> float:
    return number(name, value, most=MOST_TOKENS)


def _share(name: str, value: Any) -> float:
    return number(name, value, most=1.0)


KINDS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("engine", "engine_version", "weights", "kv_dtype"), text),
    **dict.fromkeys(("scheduling", "bill_cached"), text),
    **dict.fromkeys(("nodes", "tp", "pp", "dp", "ep", "dcp"), _nodes),
    **dict.fromkeys(("max_model_len", "max_num_seqs", "max_num_batched_tokens"), whole),
    **dict.fromkeys(("gpu_hour_usd", "dram_gb_hour_usd"), _usd),
    **dict.fromkeys(("context_tokens_mean", "tree_tokens_mean", "output_tokens_mean"), _tokens),
    **dict.fromkeys(("available_kv_gib", "turns_mean"), _tokens),
    "gpu_memory_utilization": _share,
    "think_time_cap_s": number,
    "prefix_caching": switch,
    "offload_bandwidth": quantity,
}


def checked(name: str, value: Any, *, optional: bool, spec: type | None = None) -> Any:
    """Return the value of a field, checked.

    Parameters
    ----------
    name : str
        Field of `Scenario`.
    value : object
        What was written.
    optional : bool
        True where None stands for nothing given.
    spec : type, optional
        Class whose instances stand for themselves; texts name one.

    Raises
    ------
    SpecError
        If the value is of another kind or out of bounds; the message names both.
    """
    if value is None and optional:
        return None
    if spec is not None and isinstance(value, spec):
        return value
    check: Callable[[str, Any], Any] = KINDS.get(name, text)
    return check(name, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _wrong(name: str, value: Any, expected: str) -> SpecError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return SpecError(f"{name} must be {expected}, got {shown}.", field=name)
