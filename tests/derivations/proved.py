"""Every derivation, proved once per test run."""

from __future__ import annotations

from functools import cache

from derivations import registry
from derivations.claim import Claim
from derivations.proof import Derivation, Proved

NAMES = tuple(registry.files())


@cache
def proved(name: str) -> tuple[Derivation, Proved]:
    """Return a derivation and what its proof gave."""
    item = registry.load(name)
    return item, item.prove()


def claims(name: str) -> tuple[Claim, ...]:
    """Return the claims a derivation ends in."""
    return proved(name)[1].claims
