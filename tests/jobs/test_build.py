"""A build is all or nothing, can be resumed, and counts what it reads and skips."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.corpus import ordinal_of
from arag_search.engines.lucene.location import BuildSite
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.engines.write import Bm25
from arag_search.errors import (
    AragError,
    ArgumentError,
    IndexExistsError,
    IndexLockedError,
    SourceError,
)
from arag_search.manifest import CorpusDigest, fingerprint_hex
from arag_search.system.options import names_in
from arag_search.system.progress import Progress
from arag_search.tokens import count_tokens
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.source import SeenIds
from tests.support.builds import (
    OVERWRITE,
    PLAIN,
    contents,
    corpus,
    in_own_folder,  # noqa: F401
    same_index,
)
from tests.support.shared_data import DATA


def report_lines(*sources: str, to: str = "index", options: BuildOptions = PLAIN) -> list[str]:
    """Build an index, and return the lines of its report."""
    lines = build_index(sources, Path(to), options).to_text().splitlines()
    return [line for line in lines if not line.startswith("language: ")]


def refusal(*sources: str, to: str = "index", options: BuildOptions = PLAIN) -> str:
    with pytest.raises(AragError) as caught:
        build_index(sources, Path(to), options)
    return str(caught.value)


# Contents of an index


def test_an_index_holds_every_document_in_order_with_its_metadata() -> None:
    Path("one.jsonl").write_text(
        '{"id": "a", "title": "Opera", "text": "One sentence. And another.",'
        ' "year": 1700, "x": 1}\n'
        '{"id": "b", "title": "Only a title", "text": ""}\n'
    )
    Path("notes").mkdir()
    Path("notes/sea.md").write_text("# The Sea\n\n" + "The sea is wide. " * 14)
    Path("notes/photo.png").touch()
    options = BuildOptions(
        chunk_tokens=50, metadata={"year": "number", "lang": "keyword"}, bm25=Bm25(0.9, 0.4)
    )
    report = build_index(["one.jsonl", "notes"], Path("index"), options)
    manifest, chunks, _ = contents("index")
    assert [chunk.id for chunk in chunks] == ["a.1", "b.1", "notes/sea.md.1", "notes/sea.md.2"]
    assert [chunk.ordinal for chunk in chunks] == [
        ordinal_of(0, 0, 0),
        ordinal_of(0, 1, 0),
        ordinal_of(1, 0, 0),
        ordinal_of(1, 0, 1),
    ]
    assert [chunk.content for chunk in chunks[:2]] == ["One sentence. And another.", ""]
    assert chunks[0].metadata == {"year": 1700}
    assert chunks[3].parts == 2
    digest = CorpusDigest.of(chunks)
    assert manifest.fingerprint == report.fingerprint == fingerprint_hex(digest.fingerprint)
    assert manifest.placement == fingerprint_hex(digest.placement)
    assert manifest.tokens == sum(count_tokens(chunk.content) for chunk in chunks)
    assert manifest.sentences == sum(len(chunk.sentence_ends) for chunk in chunks) == 17
    assert (manifest.documents, manifest.chunks, manifest.chunk_tokens) == (3, 4, 50)
    assert (manifest.k1, manifest.b, manifest.source_format) == (0.9, 0.4, "documents, files")
    assert manifest.undeclared_metadata == {"x": 1}
    assert report.to_text().splitlines()[1:] == [
        "one.jsonl: documents",
        "notes: files",
        "left out: 1 .png (not read; `include` reads text)",
        "not kept as fields, because `metadata` does not declare them: x (1)",
        "documents without text (records): 1 (b)",
        "declared in `metadata`, but in no record: lang",
        "language: en 100% of a sample; en is used (`language` changes that)",
    ]
    assert report.to_dict()["sources"][0] == {
        "name": "one.jsonl",
        "format": "documents",
    }


def test_pre_chunked_passages_keep_their_ids_and_are_not_mixed_with_documents() -> None:
    Path("chunks.json").write_text(json.dumps(["7:The sea.", "3:" + "An opera. " * 300]))
    report_lines("chunks.json", options=BuildOptions(chunk_tokens=16, without=("sentences",)))
    manifest, chunks, _ = contents("index")
    assert [(chunk.id, chunk.doc_id, chunk.parts) for chunk in chunks] == [
        ("7", "7", 1),
        ("3", "3", 1),
    ]
    assert (manifest.already_chunked, manifest.without) == (True, ("sentences",))
    assert not Path("index/g1/sentences").exists()
    assert refusal("chunks.json", corpus("c.jsonl", 1), to="other") == (
        "Pre-chunked passages and documents cannot be in one index.\n"
        "Where: chunks.json (arag-chunks), c.jsonl (documents)\nDo: Build an index for each."
    )
    assert not Path("other").exists()


@pytest.mark.shared_data
def test_hotpotqa_is_built() -> None:
    report = build_index([str(DATA / "hotpotqa/corpus.jsonl")], Path("index"), PLAIN)
    manifest, chunks, hits = contents("index")
    assert (manifest.documents, manifest.sentences, manifest.tokens) == (994, 4137, 123_073)
    assert len(chunks) == report.chunks == 994
    assert len(hits) == 18


# Errors and skipped records


def test_a_bad_line_stops_the_build_or_is_counted() -> None:
    corpus("c.jsonl", 3)
    with Path("c.jsonl").open("a") as file:
        file.write('oops\n{"text": 3}\n' + '{"id": "d1", "text": "again"}\n' * 5)
    fix = "Fix it, or skip it with `skip_bad_lines=True`."
    problem = "The line is not JSON (unexpected character, expected a JSON value, column 1)."
    assert refusal("c.jsonl") == f"{problem}\nWhere: c.jsonl, line 4\nDo: {fix}"
    assert not Path("index").exists(), "no checkpoint was written, so no folder stays"
    lines = report_lines("c.jsonl", options=BuildOptions(skip_bad_lines=True))
    assert lines[2:] == [
        "skipped: 7 bad records",
        f"  c.jsonl, line 4: {problem}",
        '  c.jsonl, line 5: The field "text" is a number.',
        '  c.jsonl, line 6: Duplicate id "d1": two records have it.',
        '  c.jsonl, line 7: Duplicate id "d1": two records have it.',
        '  c.jsonl, line 8: Duplicate id "d1": two records have it.',
        "  ... and 2 more",
    ]
    manifest, chunks, _ = contents("index")
    assert (manifest.skipped_lines, len(chunks)) == (7, 3)


def test_a_duplicate_id_is_named_however_far_apart() -> None:
    corpus("c.jsonl", 200)
    corpus("again.jsonl", 1)
    assert refusal("c.jsonl", "again.jsonl") == (
        'Duplicate id "d0": two records have it.\nWhere: again.jsonl, line 1\n'
        "Do: Fix it, or skip it with `skip_bad_lines=True`."
    )


def test_an_empty_corpus_is_an_error_that_says_what_was_left_out() -> None:
    Path("folder").mkdir()
    Path("folder/photo.png").touch()
    assert refusal("folder") == (
        "The corpus is empty: no document was found; left out: 1 .png (not read;"
        " `include` reads text).\n"
        "Where: folder\nDo: Name a folder with files that can be read, or files of records; see"
        " `include`."
    )
    assert not Path("index").exists()


def test_an_existing_index_is_kept_until_the_next_is_finished() -> None:
    report_lines(corpus("c.jsonl", 2))
    with pytest.raises(IndexExistsError):
        build_index(["absent.jsonl"], Path("index"), PLAIN)
    with pytest.raises(SourceError):
        build_index(["absent.jsonl"], Path("index"), OVERWRITE)
    assert len(contents("index")[1]) == 2
    report_lines(corpus("c.jsonl", 3), options=OVERWRITE)
    assert len(contents("index")[1]) == 3


def test_a_build_that_lost_passages_is_removed_and_never_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus("new.jsonl", 5)
    build_index([corpus("old.jsonl", 3)], Path("index"), PLAIN)
    before = same_index("index"), sorted(os.listdir("index"))
    monkeypatch.setattr(LuceneWriter, "add_packed", lambda self, packed: None)
    assert refusal("new.jsonl", options=OVERWRITE) == (
        "The index holds 0 passages and 0 sentences, but 5 and 15 were written.\n"
        "Where: index\nDo: Run the same command again: it starts over."
    )
    assert (same_index("index"), sorted(os.listdir("index"))) == before


def test_two_builds_at_once_are_refused() -> None:
    with BuildSite(Path("index")), pytest.raises(IndexLockedError):
        build_index(["absent.jsonl"], Path("index"), PLAIN)


def test_a_source_that_changes_while_it_is_read_is_refused() -> None:
    class Growing(Progress):
        def update(self, read_bytes: int, documents: int, details: str = "") -> None:
            Path("c.jsonl").open("a").close()
            Path("c.jsonl").touch()

    corpus("c.jsonl", 100)
    with pytest.raises(SourceError) as caught:
        build_index(["c.jsonl"], Path("index"), PLAIN, Growing())
    assert str(caught.value) == (
        "A source changed while it was being read.\nWhere: c.jsonl\n"
        "Do: Run the same command again once nothing is writing to it."
    )


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: BuildOptions(chunk_tokens=15),
            "`chunk_tokens`: 15 is out of range.\nAllowed: 16 to 100,000",
        ),
        (
            lambda: BuildOptions(bm25=Bm25(b=1.5)),
            "`bm25`: k1 = 1.2, b = 1.5 is out of range.\nAllowed: k1 from 0 to 100, b from 0 to 1",
        ),
        (
            lambda: BuildOptions(bm25=Bm25(float("nan"))),
            "`bm25`: k1 = nan, b = 0.75 is out of range.\nAllowed: k1 from 0 to 100, b from 0 to 1",
        ),
        (
            lambda: Bm25.read("1.2"),
            '`bm25`: "1.2" is not two numbers.\nAllowed: k1,b such as 1.2,0.75',
        ),
        (
            lambda: BuildOptions(without=names_in("sentences, titles")),
            '`without`: "titles" is not known.\nAllowed: sentences, exact, forms',
        ),
        (
            lambda: BuildOptions(shards=0),
            "`shards`: 0 is out of range.\nAllowed: 1 to 1,024",
        ),
        (
            lambda: build_index([], Path("index"), BuildOptions(shards=2)),
            "`shards`: an index in a folder has none.\nWhere: index\n"
            "Allowed: an index on a server\nDo: Leave it out.",
        ),
        (
            lambda: build_index([], Path("index"), BuildOptions(without=("exact",))),
            "`without`: exact takes no space in a folder.\nWhere: index\n"
            "Allowed: sentences\nDo: Leave it out.",
        ),
        (
            lambda: build_index([], Path("index"), BuildOptions(node_wait_s=5)),
            "`node_wait_s`: an index in a folder has no nodes.\nWhere: index\n"
            "Allowed: an index on a server\nDo: Leave it out.",
        ),
        (
            lambda: BuildOptions(node_wait_s=-1),
            "`node_wait_s`: -1 is out of range.\nAllowed: 0 to 86,400",
        ),
        (
            lambda: BuildOptions(workers=65),
            "`workers`: 65 is out of range.\nAllowed: 0 to 64",
        ),
        (
            lambda: BuildOptions(fields=Fields(text_field="")),
            "`text_field` is empty.\nAllowed: a key of the records",
        ),
        (
            lambda: BuildOptions(format="csv"),  # type: ignore[arg-type]
            '`format`: "csv" is not known.\n'
            "Allowed: files, text, documents, pre-chunked, passages, arag-chunks,"
            " graphrag-bench, kilt, dpr, beir, anserini",
        ),
    ],
)
def test_every_option_has_bounds(make: Callable[[], object], expected: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        make()
    assert str(caught.value) == expected


# Duplicate ids


def test_seen_ids_suspects_exactly_what_was_added_among_a_few() -> None:
    seen = SeenIds()
    assert not any(seen.add(f"id-{number}") for number in range(5000))
    assert all(seen.add(f"id-{number}") for number in range(5000))
    assert not seen.add("other")
    assert len(seen) == 5001
