"""Rolling back on a real cluster: the request that the guide prints, and what a build keeps."""

from dataclasses import replace

import pytest

from arag_search.engines.opensearch.site import OpenSearchSite
from arag_search.errors import BuildError
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import OVERWRITE, corpus, in_own_folder  # noqa: F401
from tests.support.opensearch_indexes import Site


def build(site: Site, documents: int, options: BuildOptions = OVERWRITE) -> str:
    """Build a corpus of so many documents, and return the name of the physical index."""
    return build_index([corpus("c.jsonl", documents)], site.address, options).generation


def test_the_request_of_the_guide_leads_to_the_previous_index_and_its_sentences(
    opensearch: Site,
) -> None:
    first, second = (build(opensearch, documents) for documents in (2, 3))
    opened = open_index(opensearch.address)
    opensearch.roll_back(second, first)
    assert opensearch.live() == [first, f"{first}.sentences"]
    with opened, open_index(opensearch.address) as index:
        for granularity in ("chunk", "sentence"):
            results = [
                own.logical_search("sea", granularity=granularity) for own in (index, opened)
            ]
            assert [result.passages for result in results] == [2, 3]
    third = build(opensearch, 4, replace(OVERWRITE, without=("sentences",)))
    assert opensearch.indexes() == [first, f"{first}.sentences", third], "what was live is kept"


def test_a_build_keeps_as_many_indexes_as_it_is_told(opensearch: Site) -> None:
    options = replace(OVERWRITE, without=("sentences",), keep=2)
    generations = [build(opensearch, count, options) for count in (1, 2, 3, 4)]
    assert opensearch.indexes() == sorted(generations[1:])
    last = build(opensearch, 5, replace(options, keep=0))
    assert opensearch.indexes() == [last]


def test_a_running_build_is_not_published_over_a_rollback(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (build(opensearch, documents) for documents in (1, 2))
    publish = OpenSearchSite.publish

    def published_late(self: OpenSearchSite, *arguments: object) -> None:
        opensearch.roll_back(second, first)
        publish(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(OpenSearchSite, "publish", published_late)
    with pytest.raises(BuildError, match=r"^Another build was published under this name"):
        build(opensearch, 3)
    assert opensearch.live() == [first, f"{first}.sentences"]
