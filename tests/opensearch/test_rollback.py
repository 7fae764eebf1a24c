"""Rolling back on a real cluster: one switch, and only to an index that is kept."""

from dataclasses import replace

import pytest

from arag_search.engines.opensearch.site import OpenSearchSite
from arag_search.errors import AragError, BuildError, RefusedError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.maintenance import RollbackReport, roll_back
from tests.support.builds import OVERWRITE, corpus, in_own_folder  # noqa: F401
from tests.support.commands import Command
from tests.support.opensearch_indexes import Site

BARE = replace(OVERWRITE, without=("sentences", "exact"))


def build(site: Site, documents: int, options: BuildOptions = BARE) -> str:
    """Build a corpus of so many documents, and return the name of the physical index."""
    return build_index([corpus("c.jsonl", documents)], site.address, options).generation


def refusal(site: Site) -> str:
    with pytest.raises(AragError) as caught:
        roll_back(site.address)
    return str(caught.value)


def test_the_name_leads_to_the_previous_index_again_and_to_its_sentences(
    opensearch: Site, arag: Command
) -> None:
    first = build(opensearch, 2, OVERWRITE)
    second = build(opensearch, 3)
    assert opensearch.live() == [second]
    result = arag("index", "--rollback", "--to", opensearch.address)
    assert (result.code, result.err) == (0, "")
    assert result.lines[0].startswith(f"Rolled back {opensearch.address} to the index of 20")
    assert result.lines[0].endswith(": 2 documents in 2 chunks.")
    assert result.lines[1:] == [f"live: {first}", f"kept: {second}"]
    assert opensearch.live() == [first, f"{first}.sentences"]
    assert len(opensearch.chunks()) == 2
    assert refusal(opensearch) == (
        f"No index older than the live one ({first}) is kept.\n"
        f"Where: {opensearch.address}\n"
        f"Allowed: newer ones are there: {second}\n"
        "Do: Build it again with --overwrite; BuildOptions(keep=N) keeps more of them."
    )
    third = build(opensearch, 4)
    assert opensearch.indexes() == [first, f"{first}.sentences", third]
    assert second not in opensearch.indexes(), "the index that was live is kept"


def test_a_roll_back_reaches_as_many_indexes_as_are_kept(opensearch: Site) -> None:
    options = replace(BARE, keep=2)
    generations = [build(opensearch, count, options) for count in (1, 2, 3, 4)]
    assert opensearch.indexes() == sorted(generations[1:])
    assert roll_back(opensearch.address).generation == generations[2]
    report = roll_back(opensearch.address)
    assert (report.generation, report.before, report.documents) == (
        generations[1],
        generations[2],
        2,
    )
    assert opensearch.live() == [generations[1]]
    last = build(opensearch, 5, replace(BARE, keep=0))
    assert opensearch.indexes() == [last]


def test_a_missing_or_foreign_index_is_not_rolled_back(opensearch: Site) -> None:
    assert refusal(opensearch) == (
        f"There is no index to roll back.\nWhere: {opensearch.address}\n"
        "Do: Build one: arag-search index SOURCE --to ADDRESS"
    )
    foreign = f"{opensearch.name}-20260101000000-00000000"
    opensearch.client.call("PUT", f"/{foreign}")
    build(opensearch, 1)
    assert "No index older than the live one" in refusal(opensearch)
    assert foreign in opensearch.indexes()


def test_an_index_that_lost_its_sentences_is_not_rolled_back_to(opensearch: Site) -> None:
    first = build(opensearch, 1, OVERWRITE)
    second = build(opensearch, 2)
    opensearch.client.call("DELETE", f"/{first}.sentences")
    assert refusal(opensearch) == (
        f"The previous index ({first}) is incomplete.\nWhere: {opensearch.address}\n"
        "Do: Build it again with --overwrite."
    )
    assert opensearch.live() == [second]


def test_of_two_simultaneous_roll_backs_one_is_refused(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    generations = [build(opensearch, count, replace(BARE, keep=3)) for count in (1, 2, 3)]
    switch = OpenSearchSite._switch
    reports: list[RollbackReport] = []

    def overtaken(self: OpenSearchSite, *arguments: object) -> RefusedError | None:
        if not reports:
            monkeypatch.setattr(OpenSearchSite, "_switch", switch)
            reports.append(roll_back(opensearch.address))
            reports.append(roll_back(opensearch.address))
        return switch(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(OpenSearchSite, "_switch", overtaken)
    with pytest.raises(BuildError) as caught:
        roll_back(opensearch.address)
    assert str(caught.value) == (
        f"Another process has switched this name in the meantime.\nWhere: {opensearch.address}\n"
        "Do: Check which index is live with arag-search info, then try again."
    )
    assert opensearch.live() == [generations[0]], "the choice of the other process stands"


def test_a_running_build_is_not_published_over_a_roll_back(opensearch: Site) -> None:
    first = build(opensearch, 1)
    build(opensearch, 2)
    publish = OpenSearchSite.publish

    def rolled_back_before(self: OpenSearchSite, *arguments: object) -> None:
        roll_back(opensearch.address)
        publish(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenSearchSite, "publish", rolled_back_before)
        with pytest.raises(BuildError, match=r"^Another build was published under this name"):
            build(opensearch, 3)
    assert opensearch.live() == [first]


def test_sources_and_folders_are_refused(arag: Command) -> None:
    address = "http://127.0.0.1:1/x"
    both = arag("index", "a.jsonl", "--rollback", "--to", address).err
    assert both.startswith("arag-search: --rollback and SOURCE are given together.\n")
    result = arag("index", "--rollback", "--to", "folder")
    assert result.err == (
        "arag-search: --rollback: an index in a folder keeps no previous index: it is deleted when"
        " no reader holds it.\nWhere: folder\nAllowed: an index on a server\nDo: Leave it out.\n"
    )
