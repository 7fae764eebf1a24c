"""Pages to search by hand: the command that serves one, and a browser that shows it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.browser import DESK, TIMEOUT_MS
from tests.support.patience import PATIENCE_S
from tests.support.watched_folders import MAIN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

_ADDRESS = re.compile(r"at (http://127\.0\.0\.1:\d+/#token=\S+)")


@contextmanager
def served_page(*arguments: str) -> Iterator[str]:
    """Serve the page of an index by the command, and yield the address that it prints."""
    command = [sys.executable, "-c", MAIN, "view", *arguments, "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            text = ""
            while (match := _ADDRESS.search(text)) is None:
                line = process.stderr.readline()
                assert line, text
                text += line
            yield match[1]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM


@contextmanager
def shown_page(
    browser: Browser, address: str, *, size: tuple[int, int] = DESK, dark: bool = False
) -> Iterator[Page]:
    """Show a page in a new context of the browser; nothing else may happen, and nothing be asked of
    another server."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(TIMEOUT_MS)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    events: list[str] = []
    origin = address.split("#")[0]

    def note(response: Response) -> None:
        if not response.url.startswith(origin) or response.status >= 500:
            events.append(f"{response.status} {response.url}")

    page = context.new_page()
    page.on("response", note)
    page.on("pageerror", lambda error: events.append(f"error: {error}"))
    page.on("dialog", lambda dialog: events.append(f"dialog: {dialog.message}"))
    page.on("console", lambda line: events.append(f"{line.type}: {line.text}"))
    page.goto(address)
    yield page
    assert events == []
    context.close()


def search(page: Page, query: str) -> None:
    """Type a query, press Enter, and wait for what it finds."""
    page.get_by_role("searchbox", name="Query").fill(query)
    page.keyboard.press("Enter")
    page.wait_for_function("query => decodeURIComponent(location.hash.replaceAll('+', ' '))"
                           ".includes(`q=${query}`)", arg=query)  # fmt: skip
    page.wait_for_selector("[aria-labelledby=hits-title]:not([aria-busy])")


def titles(page: Page) -> list[str]:
    """Return the titles of the hits."""
    return page.locator(".hit h3 button").all_inner_texts()


def tab(page: Page, name: str) -> None:
    """Choose what is shown beside the hits, and wait until it is there."""
    from playwright.sync_api import expect

    page.get_by_role("tab", name=name).click()
    expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
    expect(page.get_by_text("Asking.")).to_have_count(0)
