"""The page to search an index of a server by hand, in a real browser."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from arag_search.cli.app import run
from tests.support.commands import SAMPLE
from tests.support.opensearch_indexes import Site
from tests.support.search_pages import search, served_page, shown_page, tab

QUERY = '"antonio vivaldi" AND librett*'


def test_an_index_of_a_server_is_shown(browser: Browser, opensearch: Site) -> None:
    metadata = "year:number,kind:keyword"
    assert run(["index", SAMPLE, "--to", opensearch.address, "--metadata", metadata]) == 0
    with served_page(opensearch.address) as address, shown_page(browser, address) as page:
        search(page, QUERY)
        expect(page.locator(".over")).to_contain_text("8 passages, hits 1 to 5,")
        page.locator(".hit h3 button").first.click()
        expect(page.locator(".lines [aria-current]")).to_contain_text("Vivaldi")
        for name in ("Why", "Fields"):
            tab(page, name)
        expect(page.get_by_role("tabpanel")).to_contain_text("work")
        page.get_by_role("button", name="Next page").click()
        expect(page.locator(".over")).to_contain_text("hits 6 to 8,")
