"""How many requests to a server a reply takes, counted by a proxy: no row may take more again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp import ClientSession

from arag_search.engines.opensearch import reader
from arag_search.errors import IndexNotFoundError, NotServedError
from arag_search.query.problems import QueryError
from arag_search.search import opening
from arag_search.search.finding import resolve
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tools.toolbox import Toolbox
from bench.proxy import Proxy, counting, steps
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.commands import SAMPLE, file_of
from tests.support.mcp_servers import LocalServer, text_of
from tests.support.opensearch_indexes import Site, fresh_site
from tests.support.patience import PATIENCE_S


@pytest.fixture(name="proxy", scope="module")
def proxy_before_a_node(opensearch_url: str) -> Iterator[Proxy]:
    with counting(urlsplit(opensearch_url).netloc.partition(",")[0]) as proxy:
        yield proxy


# Replies, by the tool and its arguments, with the requests one after another that they take.
# Where texts name other documents, the last two are for these: to look the names up, and to count
# those that were found. Counts of all, in one request, take a server more time than the second.


REPLIES: dict[str, tuple[str, str, dict[str, object], int]] = {
    "words": ("logical_read", "logical_search", {"query": "vivaldi AND opera"}, 3),
    "names in texts": ("logical_read", "logical_search", {"query": "title:griselda OR venice"}, 3),
    "words that the page lacks": (
        "logical_read",
        "logical_search",
        {"query": "republic OR (vivaldi AND venice AND NOT doge)", "top_k": 1},
        3,
    ),
    "a misspelt word": ("logical_read", "logical_search", {"query": "vivladi"}, 3),
    "capitals that may stand with dots": ("logical_read", "logical_search", {"query": "IT"}, 3),
    "a misspelt phrase": ("logical_read", "logical_search", {"query": '"antonio vivladi"'}, 3),
    "an OR with a misspelt word": (
        "logical_read",
        "logical_search",
        {"query": '"antonio vivaldi" OR librettistts'},
        5,
    ),
    "a title that nothing has": (
        "logical_read",
        "logical_search",
        {"query": '"born in venice" OR title:composer'},
        3,
    ),
    "a list of alternatives": (
        "logical_read",
        "logical_search",
        {"query": "the OR opera OR venice", "show": "titles"},
        3,
    ),
    "a short list": (
        "logical_read",
        "logical_search",
        {"query": "griselda OR cuzzoni", "show": "titles"},
        1,
    ),
    "a pattern": ("logical_read", "logical_search", {"query": "/libret+o/"}, 4),
    "whole documents": (
        "logical_read",
        "chunk_read",
        {"chunk_ids": ["venice.1", "antonio-vivaldi.1"]},
        1,
    ),
}


@pytest.fixture(name="sample", scope="module")
def sample_index(opensearch_url: str, proxy: Proxy) -> Iterator[Index]:
    site = fresh_site(opensearch_url)
    build_index([SAMPLE], site.address)
    with open_index(f"{proxy.url}/{site.name}") as index:
        yield index
    site.remove()
    site.client.close()


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_takes_so_many_requests_one_after_another(
    sample: Index, proxy: Proxy, name: str
) -> None:
    preset, tool, arguments, most = REPLIES[name]
    toolbox = Toolbox(sample, preset)
    proxy.take()
    reply = toolbox.call(tool, arguments)
    taken = proxy.take()
    assert reply.status != "error"
    assert steps(taken) == len(taken) == most, [exchange.asked for exchange in taken]


def test_several_queries_for_documents_are_asked_at_the_same_time(
    sample: Index, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolbox = Toolbox(sample, "agentic_logical")
    first, meeting = list[str](), threading.Barrier(3, timeout=PATIENCE_S)

    def hold(asked: str, _: bytes) -> None:
        first.append(asked)
        if len(first) <= 3:
            meeting.wait()  # for the requests of the other queries

    monkeypatch.setattr(proxy, "before", hold)
    queries = ["vivaldi opera", "venice doge", "composer"]
    assert toolbox.call("search", {"queries": queries}).status == "ok"
    assert len(first) <= 8
    assert not meeting.broken


@pytest.mark.parametrize(
    ("query", "requests"),
    [("/b.t+/", 0), ("opera AND /b.t+/", 1), ("/vivaldi/i", 1), ("opera AND /vivaldi/i", 2)],
)
def test_that_too_many_passages_may_match_a_pattern_is_told_without_a_list_of_them(
    sample: Index, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, query: str, requests: int
) -> None:
    monkeypatch.setattr(resolve, "MAX_VERIFIED", 3)
    proxy.take()
    with pytest.raises(QueryError, match="more than 3 passages"):
        sample.logical_search(query)
    taken = proxy.take()
    assert len(taken) == requests
    assert all(exchange.received < 1_000 for exchange in taken)


def test_a_pattern_with_rare_letters_is_answered_in_an_index_of_any_size(
    sample: Index, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    hits = sample.logical_search("/[A-Z]uzzoni/").hits
    monkeypatch.setattr(resolve, "MAX_VERIFIED", 3)
    proxy.take()
    assert sample.logical_search("/[A-Z]uzzoni/").hits == hits
    counted, read, *_ = proxy.take()
    assert len(hits) == 1
    assert counted.received < 1_000
    assert read.received < 10_000


def test_a_large_index_on_a_server_matches_no_substrings(
    sample: Index, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sample.keyword_search(["brett"], matching="substring").hits
    assert len(proxy.take()) == 1
    monkeypatch.setattr(reader, "MAX_SCANNED", 3)
    with pytest.raises(NotServedError, match="Substring matching reads all"):
        sample.keyword_search(["brett"], matching="substring")
    assert proxy.take() == []


def test_a_process_asks_a_server_once_who_it_is(sample: Index, proxy: Proxy) -> None:
    open_index(sample.location).close()
    proxy.take()
    open_index(sample.location).close()
    assert len(proxy.take()) == 1


def test_passages_are_read_with_their_neighbours_in_two_requests(
    opensearch: Site, proxy: Proxy, tmp_path: Path
) -> None:
    text = " ".join(f"This is sentence {number} of a long text." for number in range(400))
    build_index(
        [file_of(str(tmp_path / "d.jsonl"), {"id": "d", "title": "Long", "text": text})],
        opensearch.address,
    )
    with open_index(f"{proxy.url}/{opensearch.name}") as index:
        ids, toolbox = [f"d.{part}" for part in range(1, 5)], Toolbox(index)
        proxy.take()
        read = index.chunk_read(ids)
        assert [chunk.next_id for chunk in read[:3]] == ids[1:]
        assert len(proxy.take()) == 2
        assert toolbox.call("chunk_read", {"chunk_ids": ids}).status == "ok"
        assert len(proxy.take()) == 2


# The look for another state


def build(site: Site, folder: Path, word: str) -> None:
    folder.mkdir(exist_ok=True)
    document = {"id": "d", "title": "Sea", "text": f"The sea, {word}."}
    source = file_of(str(folder / "d.jsonl"), document)
    build_index([source], site.address, BuildOptions(overwrite=True))


Begin = Callable[[], None]
"""What is called right before a call, when everything around it is made."""


def by_search(index: Index, begin: Begin) -> str:
    begin()
    return index.logical_search("sea").hits[0].snippet


def by_part(index: Index, begin: Begin) -> str:
    part = index.within("doc_id:d")
    begin()
    return part.chunk_read(["d.1"])[0].chunk.content


def by_tool(index: Index, begin: Begin) -> str:
    toolbox = Toolbox(index)
    begin()
    return toolbox.call("chunk_read", {"chunk_ids": ["d.1"]}).text


def by_protocol(index: Index, begin: Begin) -> str:
    texts: list[str] = []

    async def talk(client: ClientSession) -> None:
        await client.list_tools()
        begin()
        texts.append(text_of(await client.call_tool("chunk_read", {"chunk_ids": ["d.1"]})))

    LocalServer(indexes={"sea": index}).serve(talk)
    return texts[0]


CALLS: dict[str, Callable[[Index, Begin], str]] = {
    "a search in Python": by_search,
    "a read of a part": by_part,
    "a tool": by_tool,
    "the protocol of MCP": by_protocol,
}


def called(followers: dict[str, Index], begin: Begin = lambda: None) -> dict[str, str]:
    """Return what each call finds."""
    return {name: CALLS[name](index, begin) for name, index in followers.items()}


@pytest.fixture(name="followers")
def one_index_that_follows_for_each_call(
    opensearch: Site, proxy: Proxy, tmp_path: Path
) -> Iterator[dict[str, Index]]:
    build(opensearch, tmp_path, "calm")
    with ExitStack() as stack:
        address = f"{proxy.url}/{opensearch.name}"
        opened = {name: open_index(address, refresh="auto") for name in CALLS}
        yield {name: stack.enter_context(index) for name, index in opened.items()}


@pytest.fixture
def looks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "SERVER_LOOKS_S", 1e-9)


@pytest.fixture
def never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "SERVER_LOOKS_S", 3_600.0)


def test_the_server_is_asked_for_another_state_while_it_searches(
    looks_always: None, followers: dict[str, Index], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    called(followers)
    events: list[threading.Event] = []

    def begin() -> None:
        events.append(threading.Event())
        proxy.take()

    def hold(asked: str, _: bytes) -> None:
        if events and asked.startswith("GET"):
            events[-1].wait(PATIENCE_S)
        elif events:
            events[-1].set()

    monkeypatch.setattr(proxy, "before", hold)
    for name, index in followers.items():
        CALLS[name](index, begin)
        looks = [exchange for exchange in proxy.take() if exchange.asked.startswith("GET")]
        assert len(looks) == 1, f"{name}: a look that a search waited for was given up"


def test_every_call_after_a_rebuild_answers_from_it(
    looks_always: None, followers: dict[str, Index], opensearch: Site, tmp_path: Path
) -> None:
    assert all("calm" in text for text in called(followers).values())
    build(opensearch, tmp_path, "storm")
    assert [name for name, text in called(followers).items() if "storm" not in text] == []


def test_an_index_that_is_gone_is_looked_up_once_more_before_that_is_an_error(
    never_looks: None, followers: dict[str, Index], opensearch: Site, tmp_path: Path
) -> None:
    before = opensearch.indexes()
    build(opensearch, tmp_path, "storm")
    for physical in set(before) & set(opensearch.indexes()):
        opensearch.client.call("DELETE", f"/{physical}")
    assert [name for name, text in called(followers).items() if "storm" not in text] == []
    opensearch.remove()
    with pytest.raises(IndexNotFoundError):
        called(followers)
