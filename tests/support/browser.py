"""A real browser for tests: the system's Chromium, observed while it shows a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.absent import cannot_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Route

NAMES = ("chromium", "chromium-browser", "google-chrome")
DESK = (1440, 900)
PHONE = (390, 844)
TIMEOUT_MS = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium for the tests of one module; while it runs, nothing else can run an event
    loop."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        cannot_run(f"no Chromium is installed ({', '.join(NAMES)}): apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path)
        yield chromium
        chromium.close()


@dataclass
class PageEvents:
    """Events beside a page: ``messages`` of its console and dialogs, and its ``requests`` to the
    network."""

    messages: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])

    def check_quiet(self) -> None:
        """Check that nothing happened."""
        assert self.messages == []
        assert self.requests == []

    def note_message(self, message: ConsoleMessage) -> None:
        self.messages.append(f"{message.type}: {message.text}")

    def note_dialog(self, dialog: Dialog) -> None:
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def answer(self, route: Route) -> None:
        if route.request.url.startswith("file:") and route.request.is_navigation_request():
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()


def open_page(
    browser: Browser, path: Path, *, size: tuple[int, int] = DESK, dark: bool = False
) -> tuple[Page, PageEvents]:
    """Open a page from disk; return the page and the events beside it."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    events = PageEvents()
    page.route("**/*", events.answer)
    page.on("console", events.note_message)
    page.on("pageerror", lambda error: events.messages.append(f"error: {error}"))
    page.on("dialog", events.note_dialog)
    page.goto(path.absolute().as_uri())
    return page, events


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
