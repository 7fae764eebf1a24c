"""The page to search by hand, served by the command and shown in a real browser."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from arag_search import Toolbox
from arag_search.cli.app import run
from arag_search.search.opening import open_index
from tests.support.browser import DESK, PHONE, overflow
from tests.support.commands import Command, file_of
from tests.support.search_pages import search, served_page, shown_page, tab, titles

QUERY = '"antonio vivaldi" AND librett*'
PICTURES = Path(__file__).parents[2] / "bench" / "results"
PAYLOADS = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "javascript:window.ran=1",
    "<a href=javascript:window.ran=1>x</a><svg onload=window.ran=1>",
    "{{ 7 * 7 }}${7*7}",
    "abc\u202efdp.exe\u2066\u200e\u2028 \ufeff end",
    "\U0001d54f \U0001f600",
)


@pytest.fixture(scope="module")
def address(commands_folder: Path) -> Iterator[str]:
    with served_page("my-index") as address:
        yield address


@pytest.fixture(name="page")
def page_of_the_sample(browser: Browser, address: str) -> Iterator[Page]:
    with shown_page(browser, address) as page:
        expect(page.get_by_role("searchbox", name="Query")).to_be_focused()
        yield page


def test_a_query_is_understood_while_it_is_typed(page: Page) -> None:
    page.keyboard.type("vivaldi AND librett*")
    reading = page.locator("#reading")
    expect(reading.locator(".query")).to_have_text("Query as understood: (vivaldi AND librett*)")
    expect(reading.locator(".piece-operator")).to_have_text("AND")
    expect(page.locator(".hit")).to_have_count(0)


def test_a_mistake_is_shown_at_its_column_and_its_correction_is_searched(page: Page) -> None:
    page.keyboard.type('vivaldi AND ("red priest')
    problem = page.get_by_role("list", name="Problems of the query").get_by_role("listitem")
    expect(problem).to_contain_text(["column 13", "column 14"])
    page.get_by_role("button", name="Search the corrected query").click()
    expect(page.get_by_role("searchbox", name="Query")).to_have_value('(vivaldi AND "red priest")')
    expect(page.locator(".hit").first).to_contain_text("Antonio Vivaldi")


def test_the_reply_is_that_of_the_tool_with_its_tokens(page: Page) -> None:
    search(page, QUERY)
    with open_index("my-index") as index:
        result = Toolbox(index).call("logical_search", {"query": QUERY})
    assert page.get_by_label("Reply").text_content() == result.text
    expect(page.get_by_role("tabpanel")).to_contain_text(f"{result.tokens:,} tokens (o200k)")
    expect(page.locator(".over")).to_contain_text("8 passages, hits 1 to 5,")
    assert len(titles(page)) == 5


def test_the_same_call_in_python_and_on_the_command_line_finds_the_same(
    page: Page, arag: Command
) -> None:
    page.get_by_label("show", exact=True).select_option("titles")
    page.get_by_label("sort", exact=True).select_option("year:desc")
    search(page, QUERY)
    reply = page.get_by_label("Reply").text_content() or ""
    python = page.get_by_label("The call in Python").text_content() or ""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(python)
    assert printed.getvalue() == f"{reply}\n"
    line = page.get_by_label("The query on the command line").text_content() or ""
    assert shlex.split(line)[:3] == ["arag-search", "search", "my-index"]
    ids = re.findall(r"^\[(.+?)\]", arag(*shlex.split(line)[1:]).out, re.MULTILINE)
    assert ids == re.findall(r"^\[(.+?)\]", reply, re.MULTILINE)
    call = json.loads(page.get_by_label("The call for MCP").text_content() or "")
    assert call["params"] == {
        "name": "logical_search",
        "arguments": {"query": QUERY, "show": "titles", "sort": "year:desc"},
    }
    page.get_by_role("heading", name="The call in Python").get_by_role("button").click()
    expect(page.get_by_role("button", name="Copy (copied)")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == python


def test_pages_go_on_and_back(page: Page) -> None:
    search(page, QUERY)
    first = titles(page)
    page.get_by_role("button", name="Next page").click()
    expect(page.locator(".over")).to_contain_text("hits 6 to 8,")
    second = titles(page)
    assert len({*first, *second}) == 8
    page.go_back()
    expect(page.locator(".over")).to_contain_text("hits 1 to 5,")
    assert titles(page) == first
    page.go_forward()
    expect(page.locator(".over")).to_contain_text("hits 6 to 8,")
    assert titles(page) == second
    page.get_by_role("button", name="First page").click()
    expect(page.locator(".over")).to_contain_text("hits 1 to 5,")


@pytest.mark.parametrize(
    ("show", "shown"),
    [
        ("titles", "8 passages, hits 1 to 8"),
        ("lines", "8 passages"),
        ("counts", "8 passages, documents 1 to 8"),
    ],
)
def test_all_forms_of_a_reply_are_shown(page: Page, show: str, shown: str) -> None:
    search(page, QUERY)
    page.get_by_label("show", exact=True).select_option(show)
    expect(page.locator("section[aria-labelledby=hits-title]")).to_contain_text(shown)
    assert ("librettists" in page.locator(".hit").first.inner_text()) == (show == "lines")


def test_a_value_of_a_hit_narrows_the_query(page: Page) -> None:
    search(page, "vivaldi OR goldoni")
    page.get_by_role("button", name="kind: person").first.click()
    field = page.get_by_role("searchbox", name="Query")
    expect(field).to_have_value("((vivaldi OR goldoni) AND kind:person)")
    expect(page.locator(".hit").first).to_contain_text("kind: person")
    expect(page.get_by_text("kind: work")).to_have_count(0)


def test_why_counts_each_part_and_tells_the_scores(page: Page) -> None:
    search(page, "vivladi AND libretto^2")
    tab(page, "Why")
    rows = page.get_by_role("table", name="Each part alone").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("vivladi")
    expect(rows.nth(1)).to_contain_text("nearest: vivaldi")
    expect(rows.nth(2)).to_contain_text("libretto")
    rows.nth(1).get_by_role("button", name="vivaldi").click()
    expect(page.get_by_role("searchbox", name="Query")).to_have_value("vivaldi")
    scores = page.get_by_role("table", name="Scores of the hits")
    expect(scores).to_contain_text("vivaldi: title")
    expect(rows.nth(1)).to_contain_text("vivaldi 13")


def test_the_values_of_fields_are_counted_within_the_query(page: Page) -> None:
    search(page, QUERY)
    tab(page, "Fields")
    with open_index("my-index") as index:
        counted = {field.name: field for field in index.fields(where=QUERY).fields}
        assert index.fields(where=QUERY).passages == 8
    values = page.get_by_role("tabpanel").locator(".values").all_inner_texts()
    works = next(count for count in counted["kind"].values if count.value == "work")
    assert any(f"work {works.chunks}" in text for text in values)
    page.get_by_role(
        "button", name=f"{counted['year'].least} to {counted['year'].greatest}"
    ).click()
    expect(page.get_by_role("searchbox", name="Query")).to_have_value(
        f"({QUERY} AND year:[{counted['year'].least} TO {counted['year'].greatest}])"
    )


def test_two_calls_are_compared(page: Page) -> None:
    search(page, QUERY)
    tab(page, "Side by side")
    page.get_by_label("other tool").select_option("arag_without_semantic/keyword_search")
    page.get_by_label("other query").fill('"antonio vivaldi" libretto')
    page.get_by_role("button", name="Compare").click()
    table = page.get_by_role("table", name="Two calls")
    with open_index("my-index") as index:
        keywords = {"keywords": ["antonio vivaldi", "libretto"]}
        other = Toolbox(index, "arag_without_semantic").call("keyword_search", keywords)
    expect(table.get_by_role("row", name="tokens")).to_contain_text(f"{other.tokens:,}")
    shared = page.get_by_text(re.compile(r"\d of \d+ hits in both"))
    expect(shared).to_be_visible()
    expect(page.get_by_role("table", name="First differences")).to_be_visible()
    page.get_by_label("other tool").select_option("logical_read/logical_search")
    page.get_by_label("other query").fill("vivaldi AND (")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("column 13, (: a parenthesis")
    page.get_by_label("other query").fill(QUERY)
    page.get_by_role("button", name="Compare").click()
    expect(shared).to_have_text("5 of 5 hits in both.")
    expect(page.get_by_text("Both orders are the same.")).to_be_visible()


def test_a_tool_of_a_paper_takes_its_own_arguments(page: Page) -> None:
    search(page, "libretto")
    page.get_by_label("tool", exact=True).select_option("logicalrag_paper/logical_search")
    expect(page.get_by_label("default_operator")).to_have_value("OR")
    expect(page.get_by_label("sort", exact=True)).to_have_count(0)
    with open_index("my-index") as index:
        result = Toolbox(index, "logicalrag_paper").call("logical_search", {"query": "libretto"})
    expect(page.get_by_label("Reply")).to_have_text(result.text)


def test_the_tool_for_documents_shows_what_stands_in_its_reply(page: Page) -> None:
    page.get_by_label("tool", exact=True).select_option("agentic_rag/search")
    search(page, "who wrote the libretto of Griselda")
    expect(page.get_by_label("Reply")).to_contain_text("turn0search0")
    expect(page.locator(".hit").first).to_contain_text("libretto")
    page.locator(".hit h3 button").first.click()
    expect(page.get_by_label("Lines of the document")).to_contain_text("libretto")


def test_the_history_and_links_open_queries_again(page: Page) -> None:
    search(page, "goldoni")
    link = page.url
    search(page, "scarlatti")
    tab(page, "History")
    page.get_by_role("tabpanel").get_by_role("link", name="goldoni").click()
    expect(page.get_by_role("searchbox", name="Query")).to_have_value("goldoni")
    assert page.url == link
    second = page.context.new_page()
    second.goto(link)
    expect(second.locator(".hit").first).to_contain_text("Goldoni")
    search(second, "scarlatti")
    expect(page.locator(".hit").first).to_contain_text("Goldoni")


def test_a_newer_query_wins_over_one_that_is_still_searched(page: Page) -> None:
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        if not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/ask/call", hold_first)
    field = page.get_by_role("searchbox", name="Query")
    field.fill("vivaldi")
    page.keyboard.press("Enter")
    expect(page.locator("#news")).to_have_text("Searching.")
    search(page, "brooklyn")
    expect(page.locator(".hit").first).to_contain_text("Brooklyn")
    held[0].continue_()
    expect(page.locator(".hit").first).to_contain_text("Brooklyn")
    expect(field).to_have_value("brooklyn")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_server_that_has_ended_is_told_with_what_to_do(
    browser: Browser, commands_folder: Path
) -> None:
    with served_page("my-index") as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        search(page, "vivaldi")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Do: Start arag-search view again")
    expect(page.locator(".hit")).to_have_count(5)
    context.close()


def test_vectors_bring_their_tools_with_conditions(
    browser: Browser, commands_folder: Path, tmp_path: Path
) -> None:
    index = str(tmp_path / "index")
    shutil.copytree("my-index", index)
    assert run(["embed", index, "--encoder", "hashing"]) == 0
    with served_page(index) as address, shown_page(browser, address) as page:
        page.get_by_label("tool", exact=True).select_option("arag_logical/semantic_search")
        search(page, "who built bridges")
        tab(page, "Why")
        expect(page.get_by_role("tabpanel")).to_contain_text("ranks all passages")
        tab(page, "Fields")
        page.get_by_role("tabpanel").get_by_role("button", name="person").click()
        expect(page.get_by_label("filter", exact=True)).to_have_value("kind:person")
        expect(page.get_by_text("kind: work")).to_have_count(0)


def test_without_the_token_the_page_asks_for_the_printed_address(
    browser: Browser, address: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address.split("#")[0])
    expect(page.get_by_role("alert")).to_contain_text("Open the address that arag-search view")
    page.goto(address)
    expect(page.get_by_role("searchbox", name="Query")).to_be_visible()
    assert "token" not in page.url
    context.close()


def test_everything_can_be_done_with_keys(page: Page) -> None:
    expect(page.get_by_role("searchbox", name="Query")).to_be_focused()
    page.keyboard.type("vivaldi OR librett*")
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(5)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".hit h3 button").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    here = page.locator(".lines [aria-current]")
    expect(here).to_contain_text("Vivaldi")
    before = here.text_content() or ""
    page.keyboard.press("n")
    expect(here).not_to_have_text(before)
    page.keyboard.press("p")
    expect(here).to_have_text(before)
    page.keyboard.press("Escape")
    expect(page.locator(".hit h3 button").first).to_be_focused()
    page.get_by_role("tab", name="Reader").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Why")).to_be_focused()
    expect(page.get_by_role("table", name="Each part alone")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("goldoni")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_contain_text("Goldoni")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys and signs")
    expect(dialog).to_contain_text("next and previous match in the reader")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_menus_paging_and_values_keep_the_focus(page: Page) -> None:
    search(page, QUERY)
    show = page.get_by_label("show", exact=True)
    show.focus()
    for expected in ("titles", "lines"):
        page.keyboard.press("ArrowDown")
        expect(show).to_have_value(expected)
        expect(show).to_be_focused()
        expect(page.locator("[aria-busy]")).to_have_count(0)
    show.select_option("text")
    expect(page.locator(".over")).to_contain_text("hits 1 to 5,")
    page.get_by_role("button", name="Next page").press("Enter")
    expect(page.get_by_role("heading", name="Hits")).to_be_focused()
    page.locator(".hit h3 button").first.press("Enter")
    expect(page.get_by_role("tabpanel")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("abc")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox", name="Query")).to_have_value("abc")


def test_back_to_the_beginning_shows_what_the_index_holds(page: Page) -> None:
    expect(page.get_by_role("tabpanel", name="Fields")).to_contain_text("Of all passages")
    search(page, QUERY)
    expect(page.get_by_role("tabpanel", name="What a model sees")).to_be_visible()
    page.get_by_role("link", name="my-index").click()
    expect(page.locator(".hit")).to_have_count(0)
    expect(page.get_by_role("tabpanel")).to_contain_text("Of all passages")
    expect(page.locator(".over")).to_contain_text("passages in")
    tab(page, "What a model sees")
    expect(page.get_by_role("tabpanel")).to_contain_text("Search first.")
    tab(page, "History")
    expect(page.get_by_role("tabpanel").get_by_role("link")).to_have_count(1)


def test_a_call_that_the_tool_refuses_says_why(page: Page) -> None:
    page.goto(f"{page.url.split('#')[0]}#q=vivaldi&with=%7B%22top_k%22%3A99%7D")
    expect(page.get_by_role("alert")).to_contain_text('argument "top_k", 99')
    expect(page.locator(".over")).to_contain_text("The tool did not search.")
    page.get_by_label("top_k").fill("3")
    page.get_by_label("top_k").press("Enter")
    expect(page.locator(".hit")).to_have_count(3)
    page.goto(f"{page.url.split('#')[0]}#q=vivaldi&with=%7Bx")
    expect(page.locator(".hit")).to_have_count(5)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_every_part_of_the_page_fits_and_has_no_serious_fault(
    browser: Browser, address: str, size: tuple[int, int], dark: bool
) -> None:
    with shown_page(browser, address, size=size, dark=dark) as page:
        search(page, QUERY)
        page.locator(".hit h3 button").first.click()
        for name in ("Reader", "What a model sees", "Why", "Fields", "Side by side", "History"):
            tab(page, name)
            assert overflow(page) <= 0
            faults = [
                (fault["id"], [node["target"] for node in fault["nodes"]])
                for fault in Axe().run(page).response["violations"]
                if fault["impact"] in ("serious", "critical")
            ]
            assert faults == []


@pytest.fixture(scope="module")
def hostile_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve an index in which every text is a payload, and a passage of 1 MB."""
    place = tmp_path_factory.mktemp("hostile")
    rows = [
        {
            "id": f"{number} {payload.split()[0]}",
            "title": payload,
            "text": f"opera {payload}",
            "kind": payload,
        }
        for number, payload in enumerate(PAYLOADS)
    ]
    rows.append({"id": "long", "title": "Long", "text": "opera. " + "responsibilities " * 60_000})
    file_of(str(place / "rows.jsonl"), *rows)
    index = str(place / "index")
    assert run(["index", str(place / "rows.jsonl"), "--to", index, "--metadata", "kind:keyword",
                "--chunk-tokens", "100000"]) == 0  # fmt: skip
    with served_page(index) as address:
        yield address


def test_hostile_texts_stay_texts(browser: Browser, hostile_address: str) -> None:
    with shown_page(browser, hostile_address) as page:
        page.get_by_label("top_k").fill("20")
        search(page, "opera")
        expect(page.locator(".hit")).to_have_count(len(PAYLOADS) + 1)
        expect(page.locator(".hit .control").first).to_have_text("U+202E")
        for name in ("Why", "Fields", "Side by side", "History"):
            tab(page, name)
        for at in range(len(PAYLOADS) + 1):
            page.locator(".hit h3 button").nth(at).click()
            expect(page.locator(".lines li").first).to_contain_text("opera")
        assert page.evaluate("window.ran") is None
        assert page.locator("main :is(script, img, svg:not(.icon), style)").count() == 0
        links = page.locator("main a").evaluate_all("all => all.map((one) => one.href)")
        assert all(link.startswith(hostile_address.split("#")[0]) for link in links)


def test_a_long_passage_is_cut_on_the_page_and_read_in_parts(
    browser: Browser, hostile_address: str
) -> None:
    with shown_page(browser, hostile_address) as page:
        search(page, "title:long AND responsibilities")
        expect(page.locator(".hit")).to_contain_text("more characters: open the passage")
        page.locator(".hit h3 button").click()
        expect(page.get_by_role("tabpanel")).to_contain_text("match 1 of")
        expect(page.locator(".lines li")).to_have_count(200)
        page.get_by_role("button", name="Lines after").click()
        expect(page.locator(".lines [aria-current]")).to_contain_text("responsibilities")


def test_a_hundred_thousand_passages_are_counted_paged_and_explained(
    browser: Browser, tmp_path: Path
) -> None:
    index, rows = str(tmp_path / "index"), tmp_path / "rows.jsonl"
    with rows.open("w") as file:
        for number in range(100_000):
            row = {"id": f"d{number}", "title": f"Opera {number}", "text": "It was given in Rome.",
                   "year": 1600 + number % 300}  # fmt: skip
            file.write(f"{json.dumps(row)}\n")
    assert run(["index", str(rows), "--to", index, "--metadata", "year:number",
                "--language", "en"]) == 0  # fmt: skip
    with served_page(index) as address, shown_page(browser, address) as page:
        expect(page.locator(".over")).to_contain_text("100,000 passages in 100,000 documents")
        search(page, "opera AND rome AND year:>=1800")
        expect(page.locator(".over")).to_contain_text("more than 1,000 passages, hits 1 to 5,")
        tab(page, "Fields")
        expect(page.get_by_role("tabpanel")).to_contain_text("match the query: 33,300")
        tab(page, "Why")
        rome = page.get_by_role("table", name="Each part alone").get_by_role("row").nth(2)
        expect(rome).to_contain_text("rome100,0000100,000")
        page.get_by_label("show", exact=True).select_option("titles")
        expect(page.locator(".over")).to_contain_text("33,300 passages, hits 1 to")
        page.get_by_role("button", name="Next page").click()
        expect(page.locator(".hit").first).not_to_contain_text("Opera 200 ")


def test_nothing_on_the_page_leaves_the_filter(browser: Browser, commands_folder: Path) -> None:
    narrowed = served_page("my-index", "--filter", "kind:person")
    with narrowed as address, shown_page(browser, address) as page:
        expect(page.locator(".over")).to_have_text(re.compile(r"\d+ passages within kind:person"))
        search(page, "griselda OR kind:work")
        assert page.get_by_text("kind: work").count() == 0
        tab(page, "Fields")
        expect(page.get_by_role("tabpanel")).not_to_contain_text("work")
        token = page.evaluate("localStorage.getItem('arag-search-token')")
        answer = page.request.post(
            f"{address.split('#')[0]}ask/open",
            headers={"Authorization": f"Bearer {token}"},
            data={"call": {"preset": "logical_read", "tool": "logical_search"},
                  "document": "griselda-vivaldi"},
        )  # fmt: skip
        assert "griselda-vivaldi" in answer.json()["problem"]


def test_a_folder_is_followed_and_names_its_files(browser: Browser, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plan.md").write_text("# Heating\n\nIntro.\n\n## Boiler\n\nThe boiler is old.\n")
    with served_page(str(notes)) as address, shown_page(browser, address) as page:
        search(page, "boiler")
        hit = page.locator(".hit")
        expect(hit).to_contain_text("Heating")
        hit.get_by_title("Copy").click()
        expect(hit.get_by_title("Copy")).to_have_text("plan.md:1 (copied)")
        (notes / "pump.md").write_text("# Pump\n\nThe pump feeds the boiler.\n")
        expect(page.locator(".hit")).to_have_count(1)
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator(".hit")).to_have_count(2)


def test_an_index_that_is_built_again_under_the_page_is_searched_anew(
    browser: Browser, tmp_path: Path
) -> None:
    index, rows = str(tmp_path / "index"), str(tmp_path / "rows.jsonl")
    file_of(rows, {"id": "a", "title": "Old", "text": "opera"})
    assert run(["index", rows, "--to", index]) == 0
    with served_page(index) as address, shown_page(browser, address) as page:
        search(page, "opera")
        assert titles(page) == ["Old"]
        file_of(rows, {"id": "b", "title": "New", "text": "opera"})
        assert run(["index", rows, "--to", index, "--overwrite"]) == 0
        page.locator(".hit h3 button").click()
        expect(page.get_by_role("tabpanel")).to_contain_text('"a')
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator(".hit h3 button")).to_have_text("New")


def test_the_pictures_of_the_guides_show_the_page(browser: Browser, address: str) -> None:
    """ARAG_WRITE_PICTURES=1 writes them anew; else their sizes are compared."""
    with shown_page(browser, address, size=(1180, 720)) as page:
        for query in ("vivaldi", QUERY):  # the first search of a process is slower
            search(page, query)
        taken = {"search_page.png": page.screenshot()}
        tab(page, "Why")
        taken["search_page_why.png"] = page.screenshot()
    for name, picture in taken.items():
        if os.environ.get("ARAG_WRITE_PICTURES") == "1":
            (PICTURES / name).write_bytes(picture)
        assert (PICTURES / name).read_bytes()[:24] == picture[:24]
