"""One error class per kind of trouble; every message names the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class CapmodelError(Exception):
    """Root of every error that capmodel raises on purpose."""

    exit_code = 2

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the error, as the command line prints it."""
        return {"type": type(self).__name__, "message": str(self)}


class SpecError(CapmodelError, ValueError):
    """An input is malformed or outside its domain.

    Parameters
    ----------
    message : str
        What is wrong and what would be right.
    field : str, optional
        Name of the offending field.
    nearest : sequence of str, optional
        Valid names closest to the one given.
    """

    def __init__(self, message: str, *, field: str | None = None, nearest: Iterable[str] = ()):
        self.field = field
        self.nearest = tuple(nearest)
        hint = f" Nearest: {', '.join(self.nearest)}." if self.nearest else ""
        super().__init__(message + hint)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "field": self.field, "nearest": list(self.nearest)}


class IngestError(CapmodelError, ValueError):
    """A file does not hold what its format promises.

    Parameters
    ----------
    message : str
        What was expected.
    file : str, optional
        The file at fault.
    line : int, optional
        The line at fault, counted from 1.
    """

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None):
        self.file = file
        self.line = line
        place = "" if file is None else f"{file}{'' if line is None else f':{line}'}: "
        super().__init__(place + message)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "file": self.file, "line": self.line}


class InfeasibleError(CapmodelError):
    """The question is well posed and its answer is no: what binds, and what would relax it."""

    exit_code = 3

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None):
        self.details = dict(details or {})
        super().__init__(message)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), **self.details}


class ConvergenceError(CapmodelError):
    """A solver stopped short of its tolerance."""

    def __init__(self, message: str, *, residual: float, iterations: int):
        self.residual = residual
        self.iterations = iterations
        super().__init__(f"{message} (residual {residual:.3g} after {iterations} iterations)")


class MissingExtraError(CapmodelError, ImportError):
    """A feature needs a package that is not installed."""

    def __init__(self, package: str, extra: str):
        super().__init__(
            f"{package} is not installed; install it with: pip install 'capmodel[{extra}]'"
        )


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` known names closest to `name`, those that it begins first."""
    folded = {candidate.casefold(): candidate for candidate in known}
    begun = [candidate for candidate in folded if name and candidate.startswith(name.casefold())]
    close = difflib.get_close_matches(name.casefold(), folded, n=2 * count, cutoff=0.4)
    return [folded[match] for match in dict.fromkeys([*begun, *close])][:count]
