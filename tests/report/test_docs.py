"""The pages beside the README: every key explained, every public name listed, every link alive."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import capmodel as cm

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def test_nomenclature_has_every_key_of_an_estimate() -> None:
    page = (DOCS / "nomenclature.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.*]+)`", page))
    body = cm.estimate(cm.Scenario(model="kimi-k3", node="8xB300"), 8, level="closed").to_dict()
    keys = {key for key in body if key not in ("hit_rate", "throughput")}
    assert not keys - named
    assert not set(body["cost"]) - named


def test_reference_lists_every_public_name() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    names = set(cm.__all__) - {"__version__"}
    missing = {name for name in names if f"## `{name}`\n" not in page}
    assert not missing, "python docs/reference.py renews the page"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_links_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (DOCS / target).exists(), target
