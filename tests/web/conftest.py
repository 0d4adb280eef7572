"""Pages in the system's Chromium, offline.

Tests of pages are skipped where Chromium is not installed; the summary states it.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("tests of pages were not run: Chromium is not installed")
    with sync_playwright() as playwright:
        # Chromium's sandbox needs rights that containers lack.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class OpenedPage:
    """Page of a file, with the messages and requests that it should not have made."""

    def __init__(self, page: Page, file: Path, fragment: str = "") -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(f"{file.as_uri()}{fragment}")

    def __call__(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        return self.page.evaluate(script)

    def wait_until(self, script: str) -> None:
        """Wait until an expression is true; Playwright's own waiting needs `eval`.

        The report of all figures took more than 5 s on a busy machine.
        """
        for _ in range(1200):
            if self.page.evaluate(script):
                return
            self.page.wait_for_timeout(25)
        raise AssertionError(f"not true after 30 s: {script}")

    def check(self) -> None:
        """Assert that the page is silent, offline, not wider than its window, and accessible."""
        assert self.messages == []
        # Blobs are made by the page itself.
        assert [url for url in self.requests[1:] if not url.startswith(("blob:", "data:"))] == []
        assert self("document.documentElement.scrollWidth <= innerWidth")
        found = Axe().run(self.page).response["violations"]
        assert {item["id"]: [node["html"] for node in item["nodes"]] for item in found} == {}


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., OpenedPage]]:
    """Return a function that opens a file in a window of a width and a colour scheme."""
    contexts = []

    def opened(
        file: Path, fragment: str = "", *, width: int = 1280, theme: str = "light"
    ) -> OpenedPage:
        scheme: Any = theme
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        return OpenedPage(context.new_page(), file, fragment)

    yield opened
    for context in contexts:
        context.close()
