"""Checked access to the fields of a configuration file: every value is typed, finite, in range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import SpecError, nearest_names

LARGEST_SIZE = 10**12
LARGEST_LAYER_COUNT = 10_000


class Fields:
    """A read-only view of one configuration mapping that raises `SpecError` on malformed values.

    Parameters
    ----------
    data : mapping
        The configuration, or the part of it that describes the text model.
    name : str
        Model or file name for messages.
    """

    def __init__(self, data: Mapping[str, Any], name: str):
        self.data = data
        self.name = name

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def has(self, *keys: str) -> bool:
        """Return whether any of `keys` has a value."""
        return any(key in self for key in keys)

    def size(self, *keys: str, default: int | None = None, low: int = 1) -> int:
        """Return the first of `keys` present as an integer of at least `low`.

        Raises
        ------
        SpecError
            If none is present and there is no default, or the value is not a sane integer.
        """
        for key in keys:
            if key in self:
                return self.checked_size(self.data[key], key, low)
        if default is None:
            raise SpecError(
                f"{self.name}: the configuration lacks {' / '.join(keys)}.",
                field=keys[0],
                nearest=nearest_names(keys[0], [str(k) for k in self.data]),
            )
        return default

    def optional_size(self, *keys: str) -> int | None:
        """Return the first of `keys` present as a positive integer, or None."""
        return self.size(*keys) if self.has(*keys) else None

    def checked_size(self, value: Any, key: str, low: int = 1) -> int:
        """Return `value` as an integer in [`low`, `LARGEST_SIZE`]."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.malformed(key, value, "an integer")
        if not low <= value <= LARGEST_SIZE or value != int(value):
            raise self.malformed(key, value, f"an integer of at least {low}")
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean field, or its default where absent."""
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.malformed(key, value, "true or false")
        return value

    def text(self, key: str, default: str = "") -> str:
        """Return a text field, or its default where absent."""
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.malformed(key, value, "text")
        return value

    def part(self, key: str) -> Fields:
        """Return a nested mapping as fields, empty where absent."""
        value = self.data.get(key)
        if value is None:
            return Fields({}, self.name)
        if not isinstance(value, Mapping):
            raise self.malformed(key, value, "an object")
        return Fields(value, self.name)

    def sequence(self, key: str) -> Sequence[Any]:
        """Return a list field, empty where absent."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise self.malformed(key, value, "a list")
        return value

    def per_layer(self, key: str, layers: int) -> Sequence[Any]:
        """Return a list field with one entry per layer, longer lists cut (MTP entries follow)."""
        value = self.sequence(key)
        if len(value) < layers:
            raise SpecError(
                f"{self.name}: {key} has {len(value)} entries for {layers} layers.", field=key
            )
        return value[:layers]

    def layer_numbers(self, key: str) -> set[int]:
        """Return a list of layer numbers as a set."""
        return {self.checked_size(value, key, low=0) for value in self.sequence(key)}

    def layer_count(self) -> int:
        """Return the number of layers, refusing counts no model has [1]."""
        pattern = self.text("hybrid_override_pattern") or self.sequence("layers_block_type")
        count = self.size("num_hidden_layers", "n_layer", "num_layers", default=len(pattern), low=0)
        if not 1 <= count <= LARGEST_LAYER_COUNT:
            raise self.malformed("num_hidden_layers", count, f"1 to {LARGEST_LAYER_COUNT}")
        return count

    def malformed(self, key: str, value: Any, expected: str) -> SpecError:
        """Return the error for a value of the wrong kind."""
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        return SpecError(f"{self.name}: {key} must be {expected}, got {shown}.", field=key)
