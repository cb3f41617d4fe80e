"""The command and the book, and that SymPy stays out of an estimate."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from capmodel.cli import main
from derivations import book, registry
from derivations.claim import Claim
from derivations.proof import Derivation, Steps
from derivations.report import Reports, check_claim, prove

from .proved import claims


def _json(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_one_derivation_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["derive", "critical_concurrency", "--json"])
    answer = _json(capsys)
    assert answer["name"] == "critical_concurrency"
    assert "C^*" in str(answer["statement_latex"])
    checks = answer["checks"]
    assert isinstance(checks, list) and len(checks) >= 10
    assert all(check["ok"] is True and check["claim"] for check in checks)


def test_unknown_name_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["derive", "tarif"])
    assert stopped.value.code == 2
    assert "tariff" in capsys.readouterr().err


def test_a_name_and_all_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["derive", "tariff", "--all"])
    assert stopped.value.code == 2
    assert "not both" in capsys.readouterr().err


def test_text_shows_steps_and_code(capsys: pytest.CaptureFixture[str]) -> None:
    main(["derive", "asymptotes"])
    text = capsys.readouterr().out
    assert "[ok] 1. the asymptotes cross at N*" in text
    assert "capmodel.network.critical:saturation_concurrency" in text


def test_book_in_both_formats() -> None:
    reports = Reports(reports=tuple(prove(registry.load(n)) for n in ("asymptotes", "decode_pace")))
    written = book.markdown(reports)
    assert written.index("## 1. Two straight lines") < written.index("## 2. Decodes advance")
    assert "(capmodel/network/critical.py#L" in written and "$$" in written
    page = book.page(reports)
    assert page.startswith("<!doctype html>") and "<math" in page and "does not hold" not in page
    assert "http" not in page


def test_a_false_proof_is_reported(capsys: pytest.CaptureFixture[str],
                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    def false(step: Steps) -> object:
        step.equal("one is two", 1, 2)
        return iter(())

    item = Derivation(name="false", title="False.", statement="1 = 2", assumptions=("none",),
                      depends_on=(), module=__name__, proof=false)  # type: ignore[arg-type]  # fmt: skip
    monkeypatch.setattr(registry, "load", lambda name: item)
    with pytest.raises(SystemExit) as stopped:
        main(["derive", "false"])
    assert stopped.value.code == 1
    assert "[NO] one is two" in capsys.readouterr().out


def test_code_that_raises_does_not_have_the_value() -> None:
    claim: Claim = claims("asymptotes")[0]
    from dataclasses import replace

    assert check_claim(claim)
    assert not check_claim(replace(claim, code=lambda *values: 1 / 0))
    assert not check_claim(replace(claim, code=lambda *values: float("nan")))


def test_listing_does_not_prove() -> None:
    assert "slower roof" in registry.title("roofline")


def test_an_estimate_does_not_import_sympy() -> None:
    code = (
        "import sys, capmodel as cm\n"
        "cm.estimate(cm.Scenario(model='llama-3.1-70b', node='8xH100-80GB'), concurrency=4)\n"
        "assert not {'sympy', 'derivations'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
