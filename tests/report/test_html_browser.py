"""The HTML report in a real browser: nothing leaves the page, nothing of the log runs, filter and folds work.

Needs Chromium (Debian's package) and Playwright; without them the tests say so and are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forensics.pipeline import analyze
from forensics.report import render

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
SAMPLES = Path(__file__).parents[2] / "sample_logs"
HOSTILE = (
    "<script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> [x](javascript:alert(1)) "
    "\x1b[31m \u202e </pre></details><iframe src=https://example.com>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                  "--disable-component-update", "--disable-sync"],
        )  # fmt: skip
        yield made
        made.close()


def opened(browser: Any, path: Path) -> tuple[Any, list[str], list[str]]:
    """(page, console errors, requests that left the file)."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    return page, errors, requests


@pytest.mark.parametrize("case", ["founding_case", "one_oom", "hang_skip"])
def test_a_report_opens_offline_and_filters(case: str, browser: Any, tmp_path: Path) -> None:
    log = next(iter(sorted((SAMPLES / case).glob("*.log"))))
    report = tmp_path / "report.html"
    report.write_text(render(analyze([str(log)]), "html"), encoding="utf-8")
    page, errors, requests = opened(browser, report)
    assert (errors, requests) == ([], [])
    assert page.locator("#search").is_visible()
    page.fill("#search", "zzz-not-in-any-report")
    assert page.locator(".findable:not(.lost)").count() == 0
    page.fill("#search", "")
    before = page.locator("details[open]").count()
    page.click("#fold")
    assert page.locator("details[open]").count() != before
    page.click("#theme")
    assert page.locator("html.dark, html.light").count() == 1
    assert (errors, requests) == ([], [])
    if shots := os.environ.get("FORENSICS_SCREENSHOTS"):
        page.screenshot(path=f"{shots}/{case}.png", full_page=True)
    page.close()


def test_text_of_the_log_stays_text(browser: Any, tmp_path: Path) -> None:
    log = f'Traceback (most recent call last):\n  File "/srv/{HOSTILE[:40]}.py", line 3, in f\n    g()\nValueError: {HOSTILE}\n'
    report = tmp_path / "report.html"
    report.write_text(render(analyze([log.encode()]), "html"), encoding="utf-8")
    page, errors, requests = opened(browser, report)
    assert (errors, requests) == ([], [])
    assert page.title() != "owned"
    assert page.locator("img, iframe, a[href^='javascript']").count() == 0
    assert "<script>document.title='owned'</script>" in page.inner_text("body")
    page.close()


def test_it_reads_without_javascript(browser: Any, tmp_path: Path) -> None:
    log = next(iter(sorted((SAMPLES / "founding_case").glob("*.log"))))
    report = tmp_path / "report.html"
    report.write_text(render(analyze([str(log)]), "html"), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "arch_mismatch" in page.inner_text("body")
    assert not page.locator("#search").is_visible()
    context.close()
