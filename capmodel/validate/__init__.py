"""Validate: measured cases against the model, misses included. Call it, or open its sets."""

from ..callable_package import answer_calls

answer_calls(__name__, "capmodel.validate.validation", "validate")
