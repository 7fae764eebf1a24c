"""A server that is set to refuse expensive queries: advice does without them."""

import json
from collections.abc import Iterator

import pytest

from arag_search.errors import ArgumentError
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from tests.support.cluster import LocalCluster
from tests.support.commands import SAMPLE, Command
from tests.support.opensearch_indexes import Site, fresh_site

SETTING = "search.allow_expensive_queries"
WHY = f"The search server takes no prefixes and no fuzzy words ({SETTING}: false)."


@pytest.fixture(name="site", scope="module")
def index_on_a_server_that_refuses(own_node: LocalCluster) -> Iterator[Site]:
    site = fresh_site(own_node.url)
    build_index([SAMPLE], site.address)
    allow(site, False)
    yield site
    allow(site, None)
    site.remove()
    site.client.close()


def allow(site: Site, allowed: bool | None) -> None:
    site.client.call("PUT", "/_cluster/settings", {"persistent": {SETTING: allowed}})


def test_a_search_without_a_hit_is_answered_and_says_why_it_names_no_words(site: Site) -> None:
    with open_index(site.address) as index:
        for _ in range(2):
            result = index.logical_search("librettoo")
            assert (result.total, result.notes) == (0, (f"Nearest words are not known: {WHY}",))
        assert index.logical_search("opera AND librettoo").total == 0
        assert index.logical_search("opera").total
        (counts,) = index.words("librettoo")
        assert (counts.passages, counts.nearest) == (0, {})


@pytest.mark.parametrize("query", ["librett*", "librettoo~1", "opera AND librett*"])
def test_what_a_query_itself_asks_is_refused_by_the_name_of_the_setting(
    site: Site, query: str
) -> None:
    with open_index(site.address) as index, pytest.raises(ArgumentError) as caught:
        index.logical_search(query)
    assert caught.value.what == WHY
    assert caught.value.do == f"Write whole words, or set {SETTING} to null on the server."


def test_a_pattern_is_looked_for_in_all_texts(site: Site) -> None:
    with open_index(site.address) as index:
        assert index.logical_search("/[A-Z]uzzoni/").total == 1


def test_commands_answer_too(site: Site, arag: Command) -> None:
    words = arag("words", site.address, "librettoo")
    assert words.out.splitlines()[-1] == f"Nearest words are not known: {WHY}"
    search = arag("search", site.address, "librettoo", "--json")
    assert (search.code, json.loads(search.out)["total"]) == (1, 0)
