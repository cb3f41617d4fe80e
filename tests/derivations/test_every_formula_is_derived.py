"""Architecture: a module with formulas has a derivation, or a reason why it needs none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from derivations import registry
from derivations.book import code_link

from .proved import NAMES, claims

ROOT = Path(__file__).parents[2]
STAGES = ("spec", "memory", "reuse", "service", "network", "cost", "optimize")

# Modules without a formula of their own: why.
EXCEPTIONS = {
    "data, no formula": {
        "memory.engine_defaults",
        "memory.limits",
        "memory.recorded_build",
        "memory.drafts",
        "service.kernels",
        "service.roofline",
        "spec.accelerator",
        "spec.attention",
        "spec.deployment",
        "spec.model",
        "spec.node",
        "spec.precision",
        "spec.prices",
        "reuse.service_model",
        "reuse.session_table",
        "reuse.result",
    },
    "assembles what other modules compute": {
        "memory.budget",
        "memory.layouts",
        "memory.ledger",
        "memory.stages",
        "memory.inverse",
        "memory.result",
        "memory.pools",
        "service.engine_law",
        "optimize.concurrency",
        "optimize.configuration",
        "optimize.evaluation",
        "optimize.evidence",
        "optimize.plan",
        "optimize.planner",
        "optimize.certificate",
        "optimize.binding",
        "optimize.infeasible",
        "optimize.slo",
        "optimize.worth",
        "optimize.check",
        "optimize.frontier",
        "optimize.plan_text",
        "optimize.robustness",
        "optimize.sensitivity",
        "reuse.surface",
        "memory.compressed_pages",
        "memory.kv_budget",
        "service.layout",
        "service.ledger",
        "optimize.branch_and_bound",
        "reuse.curve",
        "reuse.curve_result",
        "reuse.curve_source",
    },
    "constants fitted on logs": {"memory.overhead", "reuse.fit"},
    "counts, exact by construction, tested against independent replays": {
        "reuse.block_curve",
        "reuse.block_kernel",
        "reuse.block_stack",
        "reuse.replay_kernel",
        "reuse.compiled",
        "reuse.sampling",
        "reuse.sharding",
    },
    "numerical method around proved formulas, tested against simulation": {
        "network.flow_table",
        "network.loss_size",
        "network.latency",
        "network.benchmark_hour",
        "reuse.composition",
        "reuse.feedback",
        "reuse.moments",
        "optimize.fleet",
        "optimize.geometric",
        "optimize.price_floor",
        "optimize.splitting",
        "service.closed_loop",
    },
}


def _modules() -> set[str]:
    return {
        f"{stage}.{path.stem}"
        for stage in STAGES
        for path in (ROOT / "capmodel" / stage).glob("*.py")
        if path.stem != "__init__"
    } | {"normal"}


def _derived() -> set[str]:
    return {
        name.partition(":")[0].removeprefix("capmodel.")
        for derivation in NAMES
        for claim in claims(derivation)
        for name in claim.implements
    }


def test_every_module_is_derived_or_excused() -> None:
    excused = set().union(*EXCEPTIONS.values())
    missing = _modules() - _derived() - excused
    assert not missing, f"no derivation names {sorted(missing)}: write one, or give a reason"


def test_no_excuse_is_needless() -> None:
    excused = set().union(*EXCEPTIONS.values())
    assert not excused & _derived()


def test_at_least_half_of_the_modules_are_derived() -> None:
    assert len(_derived() & _modules()) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_claims_name_code_that_exists(name: str) -> None:
    for claim in claims(name):
        assert claim.implements
        for function in claim.implements:
            path, _ = code_link(function)
            assert (ROOT / path.partition("#")[0]).is_file()


def test_derivations_that_docstrings_name_exist() -> None:
    named = set()
    for path in (ROOT / "capmodel").rglob("*.py"):
        named |= set(re.findall(r"Derivation: ``(\w+)``", path.read_text(encoding="utf-8")))
    assert len(named) >= 4
    assert named <= set(registry.files())
