"""Rolling back on a real cluster: one switch, to what is kept, and only that."""

from dataclasses import replace

import pytest

from arag_search.engines.opensearch.site import OpenSearchSite
from arag_search.errors import AragError, BuildError, RefusedError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.rollback import RollbackReport, roll_back
from tests.support.builds import OVERWRITE, corpus, in_own_folder  # noqa: F401
from tests.support.commands import Command
from tests.support.opensearch_indexes import Site

BARE = replace(OVERWRITE, without=("sentences", "exact"))


def built(site: Site, documents: int, options: BuildOptions = BARE) -> str:
    """Build a corpus of so many documents; the physical index."""
    return build_index([corpus("c.jsonl", documents)], site.address, options).generation


def refusal(site: Site) -> str:
    with pytest.raises(AragError) as caught:
        roll_back(site.address)
    return str(caught.value)


def test_the_name_leads_to_the_index_before_again_with_its_sentences(
    opensearch: Site, arag: Command
) -> None:
    first = built(opensearch, 2, OVERWRITE)
    second = built(opensearch, 3)
    assert opensearch.live() == [second]
    done = arag("index", "--rollback", "--to", opensearch.address)
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith(f"Rolled back {opensearch.address} to the index of 20")
    assert done.lines[0].endswith(": 2 documents in 2 chunks.")
    assert done.lines[1:] == [f"live: {first}", f"kept: {second}"]
    assert opensearch.live() == [first, f"{first}.sentences"]
    assert len(opensearch.chunks()) == 2
    assert refusal(opensearch) == (
        f"No index before the one that is live ({first}) is kept.\n"
        f"Where: {opensearch.address}\n"
        f"Allowed: newer ones are there: {second}\n"
        "Do: Build it again with --overwrite; --keep N keeps more of those before."
    )
    third = built(opensearch, 4)
    assert opensearch.indexes() == [first, f"{first}.sentences", third]
    assert second not in opensearch.indexes(), "the one that was live is the one that is kept"


def test_as_many_as_are_to_be_kept_can_be_gone_back_to(opensearch: Site) -> None:
    options = replace(BARE, keep=2)
    made = [built(opensearch, count, options) for count in (1, 2, 3, 4)]
    assert opensearch.indexes() == sorted(made[1:])
    assert roll_back(opensearch.address).generation == made[2]
    report = roll_back(opensearch.address)
    assert (report.generation, report.before, report.documents) == (made[1], made[2], 2)
    assert opensearch.live() == [made[1]]
    last = built(opensearch, 5, replace(BARE, keep=0))
    assert opensearch.indexes() == [last]


def test_an_index_that_is_not_there_or_not_ours_is_not_rolled_back(opensearch: Site) -> None:
    assert refusal(opensearch) == (
        f"There is no index to roll back.\nWhere: {opensearch.address}\n"
        "Do: Build one: arag-search index SOURCE --to ADDRESS"
    )
    foreign = f"{opensearch.name}-20260101000000-00000000"
    opensearch.client.call("PUT", f"/{foreign}")
    built(opensearch, 1)
    assert "No index before the one that is live" in refusal(opensearch)
    assert foreign in opensearch.indexes()


def test_an_index_that_lost_its_sentences_is_not_gone_back_to(opensearch: Site) -> None:
    first = built(opensearch, 1, OVERWRITE)
    second = built(opensearch, 2)
    opensearch.client.call("DELETE", f"/{first}.sentences")
    assert refusal(opensearch) == (
        f"The previous index ({first}) is incomplete.\nWhere: {opensearch.address}\n"
        "Do: Build it again with --overwrite."
    )
    assert opensearch.live() == [second]


def test_of_two_who_roll_back_at_once_one_is_told(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [built(opensearch, count, replace(BARE, keep=3)) for count in (1, 2, 3)]
    switch = OpenSearchSite._switch
    others: list[RollbackReport] = []

    def overtaken(self: OpenSearchSite, *arguments: object) -> RefusedError | None:
        if not others:
            monkeypatch.setattr(OpenSearchSite, "_switch", switch)
            others.append(roll_back(opensearch.address))
            others.append(roll_back(opensearch.address))
        return switch(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(OpenSearchSite, "_switch", overtaken)
    with pytest.raises(BuildError) as caught:
        roll_back(opensearch.address)
    assert str(caught.value) == (
        f"Another process switched this name meanwhile.\nWhere: {opensearch.address}\n"
        "Do: Check which index is live with arag-search info, and decide again."
    )
    assert opensearch.live() == [made[0]], "what the other chose"


def test_a_build_under_way_is_not_published_over_a_roll_back(opensearch: Site) -> None:
    first = built(opensearch, 1)
    built(opensearch, 2)
    publish = OpenSearchSite.publish

    def rolled_back_before(self: OpenSearchSite, *arguments: object) -> None:
        roll_back(opensearch.address)
        publish(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenSearchSite, "publish", rolled_back_before)
        with pytest.raises(BuildError, match=r"^Another build was published under this name"):
            built(opensearch, 3)
    assert opensearch.live() == [first]


def test_sources_and_folders_are_refused(arag: Command) -> None:
    done = arag("index", "a.jsonl", "--rollback", "--to", "http://127.0.0.1:1/x")
    assert done.err == (
        "arag-search: --rollback builds nothing, and sources are given.\nWhere: a.jsonl\n"
        "Do: Leave them out, or leave --rollback out.\n"
    )
    done = arag("index", "--dry-run", "--rollback", "--to", "http://127.0.0.1:1/x")
    assert done.err == (
        "arag-search: --rollback and --dry-run are both given.\nWhere: http://127.0.0.1:1/x\n"
        "Do: Leave one of them out.\n"
    )
    done = arag("index", "--rollback", "--to", "folder")
    assert done.err == (
        "arag-search: --rollback: an index in a folder keeps no index before: it is deleted when"
        " no reader holds it.\nWhere: folder\nAllowed: an index on a server\nDo: Leave it out.\n"
    )
