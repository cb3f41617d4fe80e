"""A derivation re-proved now: its steps, and its claims against the code at drawn points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .claim import Claim
from .proof import Check, Derivation


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A derivation with what was just checked.

    Parameters
    ----------
    derivation : Derivation
        Statement, assumptions and proof.
    steps : tuple of Check
        Symbolic steps.
    claims : tuple of Check
        Claims against the code, one check each.
    sources : tuple of Claim
        The claims themselves.
    """

    derivation: Derivation
    steps: tuple[Check, ...]
    claims: tuple[Check, ...]
    sources: tuple[Claim, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        """Steps and claims in the order of the proof."""
        return self.steps + self.claims

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of ``capmodel derive NAME``."""
        item = self.derivation
        return {
            "name": item.name,
            "title": item.title,
            "statement_latex": item.statement,
            "assumptions": list(item.assumptions),
            "depends_on": list(item.depends_on),
            "checks": [{"claim": check.claim, "ok": check.ok} for check in self.checks],
        }

    def __str__(self) -> str:
        item = self.derivation
        lines = [f"{item.name}: {item.title}", "", f"  {item.statement}", ""]
        lines += [f"  assumes  {text}" for text in item.assumptions]
        if item.depends_on:
            lines.append(f"  after    {', '.join(item.depends_on)}")
        lines.append("")
        for check in self.steps:
            lines.append(f"  [{_mark(check)}] {check.claim}")
            lines.append(f"           {check.latex}")
        lines.append("")
        for check, claim in zip(self.claims, self.sources, strict=True):
            lines.append(f"  [{_mark(check)}] {check.claim}")
            lines.append(f"           {', '.join(claim.implements)}")
        held = sum(check.ok for check in self.checks)
        lines.append(f"\n  {held} of {len(self.checks)} checks hold")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """All derivations, in an order in which each comes after what it uses."""

    reports: tuple[Report, ...]

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return all(report.ok for report in self.reports)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of ``capmodel derive``."""
        return {"derivations": [report.to_dict() for report in self.reports]}

    def __str__(self) -> str:
        lines = []
        for report in self.reports:
            held = sum(check.ok for check in report.checks)
            mark = "ok " if report.ok else "NO "
            count = f"{held}/{len(report.checks)}"
            lines.append(
                f"{mark} {report.derivation.name:<24} {count:>8}  {report.derivation.title}"
            )
        total = [check for report in self.reports for check in report.checks]
        lines.append(
            f"\n{len(self.reports)} derivations, "
            f"{sum(c.ok for c in total)} of {len(total)} checks hold"
        )
        return "\n".join(lines)


def _mark(check: Check) -> str:
    return "ok" if check.ok else "NO"


def check_claim(claim: Claim) -> bool:
    """Return whether the code has the claimed value at every drawn point.

    Code that raises does not have it: a claim outlives the signature it was written for.
    """
    try:
        return all(claim.agrees(point, claim.expected(point)) for point in claim.points())
    except Exception:
        return False


def prove(derivation: Derivation) -> Report:
    """Prove a derivation and evaluate its claims."""
    proved = derivation.prove()
    return Report(
        derivation=derivation,
        steps=proved.checks,
        claims=tuple(Check(claim=claim.text, ok=check_claim(claim)) for claim in proved.claims),
        sources=proved.claims,
    )
