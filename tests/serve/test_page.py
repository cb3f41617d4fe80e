"""The planner page in a real browser: loads, moves with the sliders, keeps to the keyboard, fails
in words, and fits a desk and a phone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "capmodel", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    try:
        assert server.stderr is not None
        # The socket is bound before the address is printed, so a browser may come at once.
        yield server.stderr.readline().split()[0]
    finally:
        server.terminate()
        server.wait(10)
        server.stderr.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Containers run as root, where Chromium has no sandbox to offer.
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(params=[1280, 390])
def page(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": request.param, "height": 900})
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on(
        "console",
        lambda message: faults.append(message.text) if message.type == "error" else None,
    )
    opened.on(
        "request",
        lambda sent: None if sent.url.startswith((address, "data:")) else faults.append(sent.url),
    )
    opened.goto(address)
    opened.wait_for_selector("body[data-shown]", timeout=30_000)
    opened.faults = faults
    yield opened
    opened.close()


def wait_for_words(page: Any, part: str) -> None:
    """Wait until the words on the page answer a question that holds `part`.

    The page's policy forbids evaluated strings, so the waiting is done out here.
    """
    deadline = time.monotonic() + 30
    while part not in page.get_attribute("body", "data-shown").split("&"):
        assert time.monotonic() < deadline, part
        page.wait_for_timeout(50)


def line(page: Any) -> str:
    path: str = page.get_attribute("svg[data-chart=output] path", "d")
    return path


def test_page_loads_and_fits(page: Any, tmp_path: Path) -> None:
    assert page.inner_text("#answer").startswith("SAFE")
    assert page.locator("#charts svg").count() == 3
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 10_000
    assert page.faults == []


def test_sliders_move_the_curve_by_keyboard(page: Any) -> None:
    before = line(page)
    page.focus("#offload_tib")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    wait_for_words(page, "offload_tib=1.5")
    assert line(page) != before
    assert "--offload" in page.inner_text("#command")
    assert page.faults == []


def test_every_control_is_reached_by_tab(page: Any) -> None:
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(11):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.name || document.activeElement.id"))
    assert reached == [
        "model", "count", "part", "workload", "concurrency", "offload_tib", "gpu_hour_usd",
        "input_usd", "cached_usd", "output_usd", "share",
    ]  # fmt: skip


def test_address_shares_the_scenario(page: Any, browser: Any) -> None:
    page.focus("#concurrency")
    page.keyboard.press("ArrowRight")
    wait_for_words(page, "concurrency=9")
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("body[data-shown]", timeout=30_000)
    assert other.input_value("#concurrency") == "9"
    assert other.inner_text("#answer") == page.inner_text("#answer")
    other.close()


def test_errors_show_and_go(page: Any) -> None:
    page.fill("[name=count]", "1")
    page.wait_for_selector("#error:not([hidden])", timeout=30_000)
    assert "does not fit" in page.inner_text("#error")
    page.fill("[name=count]", "8")
    page.wait_for_selector("#error", state="hidden", timeout=30_000)
    # The browser itself reports refused requests; nothing else may be there.
    assert all("422" in fault for fault in page.faults)
