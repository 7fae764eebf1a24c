"""Incomplete and malformed answers of a server: each is an error."""

from __future__ import annotations

import copy
import json
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from arag_search.engines.base import FieldsRequest, KeywordRequest, SearchRequest, SortBy
from arag_search.engines.opensearch import reader, values
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import KNOWN_SERVERS, Client
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.errors import AragError, EngineError, UnavailableError
from arag_search.query.reading import parse
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.examples import examples, some_of
from tests.support.opensearch_indexes import Site, fresh_site
from tests.support.patience import PATIENCE_S
from tests.support.plans import planned
from tests.support.unruly_server import WHOLE, Answer, UnrulyServer, unruly, version
from tests.support.updated_corpora import document

QUICK = ConnectionOptions(
    attempt_timeout_s=PATIENCE_S, request_budget_s=PATIENCE_S, opening_budget_s=PATIENCE_S
)
JUNK: tuple[Any, ...] = ([], "x", 5, None, {})


@pytest.fixture(name="server")
def running_server() -> Iterator[UnrulyServer]:
    with unruly() as server:
        yield server


@pytest.fixture(name="client")
def connected(server: UnrulyServer) -> Iterator[Client]:
    server.reply_with(version())
    client = Client.connect(parse_address(f"{server.url}/wiki"), QUICK)
    yield client
    client.close()


def searches(client: Client, count: int) -> object:
    lines = [{"index": "wiki"}, {"size": 3, "sort": [{"ordinal": "asc"}]}] * count
    return client.call("POST", "/_msearch", lines)


def shards(**counts: object) -> dict[str, object]:
    return {**WHOLE, "_shards": {"total": 3, "successful": 3, "skipped": 0, "failed": 0, **counts}}


@pytest.mark.parametrize(
    "answer",
    [
        [],
        "x",
        5,
        None,
        {},
        {**WHOLE, "_shards": None},
        shards(successful=2),
        shards(total=4, skipped=1),
        {**WHOLE, "_clusters": {"total": 2, "successful": 1, "skipped": 1}},
        {**WHOLE, "_clusters": {"total": 1, "successful": 1, "skipped": 1}},
    ],
)
def test_an_incomplete_answer_to_a_search_is_an_error(
    server: UnrulyServer, client: Client, answer: object
) -> None:
    server.reply_with(Answer(answer))
    with pytest.raises(EngineError) as caught:
        client.call("POST", "/wiki/_search", {"size": 3})
    assert caught.value.where == server.url
    assert len(server.requests) == 1
    server.reply_with(Answer({"responses": [WHOLE, answer]}))
    with pytest.raises(EngineError):
        searches(client, 2)


def test_fewer_answers_than_searches_are_an_error_with_four_parts(
    server: UnrulyServer, client: Client
) -> None:
    server.reply_with(Answer({"responses": [WHOLE]}))
    with pytest.raises(EngineError) as caught:
        searches(client, 2)
    assert caught.value.where == str(server.url)
    assert "1 responses for 2" in caught.value.what


@pytest.mark.parametrize("body", [[], "x", 5, {"error": []}, {"error": {"root_cause": [3]}}])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 503])
def test_an_error_of_any_shape_is_an_error_of_ours(
    server: UnrulyServer, client: Client, status: int, body: object
) -> None:
    server.reply_with(Answer(body, status))
    with pytest.raises(EngineError):
        client.call("POST", "/wiki/_search", {"size": 0}, budget_s=0)
    server.reply_with(Answer(shards(failed=1, failures=body)))  # type: ignore[arg-type]
    with pytest.raises(UnavailableError):
        client.call("POST", "/wiki/_search", {"size": 0}, budget_s=0)


# Real answers that are changed


class Proxy:
    """A server in between that changes the answers of a real server. It remembers the answers to
    the same request if ``remembers`` is set."""

    def __init__(self, server: UnrulyServer, url: str) -> None:
        self._server = server
        self._url = url
        self._answers: dict[tuple[str, bytes], Any] = {}
        self.remembers = False
        self.change: Callable[[str, str, Any], Any] = lambda method, path, answer: answer
        server.rule = self.answer

    def answer(self, path: str, body: bytes) -> Answer:
        method = self._server.requests[-1][0]
        question = (f"{method} {path.partition('preference=')[0]}", _without_preference(body))
        if self.remembers and question in self._answers:
            loaded, status = self._answers[question], 200
        else:
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(self._url + path, body or None, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
                    loaded, status = json.load(reply), reply.status
            except urllib.error.HTTPError as error:
                return Answer(json.load(error), error.code)
            self._answers[question] = loaded
        return Answer(self.change(method, path, copy.deepcopy(loaded)), status)


def _without_preference(body: bytes) -> bytes:
    lines = [json.loads(line) for line in body.splitlines()]
    for line in lines:
        line.pop("preference", None)
    return json.dumps(lines).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a value, with each of its keys or indexes."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _spoil(answer: Any, chance: Random) -> Any:
    """Change or remove one value of the answer."""
    holder, key = chance.choice(list(_places(answer)))
    if chance.random() < 0.2:
        del holder[key]
    else:
        holder[key] = chance.choice((*JUNK, -1, 10**30, [[]], {"x": 1}))
    return answer


def _calls(engine: OpenSearchEngine) -> dict[str, Callable[[], object]]:
    tree = parse("opera OR sea", engine.manifest.query_schema).tree
    chunks = SearchRequest(planned(tree), 5)
    passages = SearchRequest(
        planned(tree), 5, granularity="sentence", with_text=True, whole_text=True
    )
    sentences = SearchRequest(
        planned(tree), 5, granularity="sentence", with_text=True, whole_text=False
    )
    limited = replace(chunks, sort=SortBy("year"), per_document=2)
    fields = FieldsRequest(("content", "doc_id", "year"))
    first = engine.read(["a.1"], None)[0]
    assert first is not None
    return {
        "search": lambda: engine.search(chunks),
        "sentences": lambda: engine.search(sentences),
        "passages": lambda: engine.search(passages),
        "per document": lambda: engine.search(limited),
        "sentences per document": lambda: engine.search(replace(sentences, per_document=1)),
        "field values": lambda: engine.field_values(fields),
        "keyword": lambda: engine.keyword_search(KeywordRequest(("opera",), 5)),
        "counts": lambda: engine.counts(
            [(planned(tree), "chunk"), (planned(tree), "sentence")], None
        ),
        "explain": lambda: engine.explain(chunks, ["a.1", "b.1"]),
        "explain sentences": lambda: engine.explain(sentences, ["a.1"]),
        "read": lambda: engine.read(["a.1", "b.1", "z"], None),
        "neighbours": lambda: engine.neighbours([replace(first, parts=2)], None),
        "scan": lambda: list(engine.scan(None)),
        "ordinals": lambda: list(engine.ordinals()),
        "statistics": engine.statistics,
    }


def test_no_value_of_any_answer_can_end_in_a_traceback(
    server: UnrulyServer, opensearch: Site, opensearch_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [document(name, "An opera. The sea.", year=1678) for name in "abc"]
    options = BuildOptions(metadata={"year": "number"})
    build_index([file_of("built.jsonl", *documents)], opensearch.address, options)
    monkeypatch.setattr(reader, "_SETTLING_S", 0.1)
    monkeypatch.setattr(values, "MAX_QUICK_VALUES", 2)  # so that doc_id takes pages
    proxy = Proxy(server, opensearch_url)
    proxy.remembers = True
    address = parse_address(f"{server.url}/{opensearch.name}")
    with_answers = OpenSearchEngine.open(address, QUICK)

    def opened() -> None:
        KNOWN_SERVERS.clear()
        OpenSearchEngine.open(address, QUICK).close()

    calls = {**_calls(with_answers), "open": opened}
    chance = Random(5)
    errors = 0
    for name, call in calls.items():
        expected = call()
        assert call() == expected, name
        for junk in JUNK:
            proxy.change = lambda method, path, answer, junk=junk: junk
            with pytest.raises(EngineError):
                call()
        for _ in range(examples(300)):
            proxy.change = lambda method, path, answer: _spoil(answer, chance)
            try:
                call()
            except AragError:
                errors += 1
        proxy.change = lambda method, path, answer: answer
        assert call() == expected, name
    assert errors > 100
    with_answers.close()


@pytest.mark.parametrize("job", some_of(["build", "add", "delete"]))
def test_no_answer_to_a_job_can_end_in_a_traceback(
    job: str, server: UnrulyServer, opensearch_url: str, tmp_path: Path
) -> None:
    proxy = Proxy(server, opensearch_url)
    before = file_of("before.jsonl", *(document(name, "A sea.") for name in "abc"))
    additions = file_of("more.jsonl", document("b", "Old."), document("d", "New."))
    endpoints: list[str] = []
    spoilt: list[str] = []
    junk = iter(JUNK * 20)

    def change(method: str, path: str, answer: Any) -> Any:
        endpoint = f"{method} {next((p for p in path.split('/') if p.startswith('_')), '')}"
        endpoints.append(endpoint.partition("?")[0])
        if spoilt or endpoints[-1] in spoilt_endpoints:
            return answer
        spoilt.append(endpoints[-1])
        return next(junk)

    spoilt_endpoints: set[str] = set()
    while True:
        site = fresh_site(opensearch_url)
        address = f"{server.url}/{site.name}"
        try:
            proxy.change = lambda method, path, answer: answer
            if job != "build":
                build_index([before], site.address, BuildOptions())
            spoilt.clear()
            proxy.change = change
            try:
                if job == "build":
                    build_index([before], address, BuildOptions())
                elif job == "add":
                    add_documents([additions], address)
                else:
                    delete_documents(address, ["a"])
            except AragError as error:
                assert not isinstance(error, UnavailableError), error
        finally:
            site.remove()
            site.client.close()
        if not spoilt:
            break
        spoilt_endpoints.update(spoilt)
    assert {"GET ", "POST _aliases", "PUT _mapping", "POST _refresh"} <= spoilt_endpoints
