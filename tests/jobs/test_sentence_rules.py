"""An index, a folder of chunks and an interrupted build keep the rule for sentences they began
with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search import open_index
from arag_search.cli.app import run
from arag_search.errors import AragError, ArgumentError, IndexVersionError
from arag_search.manifest import FIRST_SENTENCE_RULE, Manifest
from index_jobs.__main__ import stages
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.cutting import sentences
from index_jobs.cutting.sentences import SENTENCE_RULE
from index_jobs.stages.chunk import Share, chunk_sources
from index_jobs.stages.load import load_chunks
from index_jobs.updates.addition import AddOptions, add_documents, sync_documents
from tests.support.builds import contents, in_own_folder  # noqa: F401

TEXT = "Ave Caesar! is a film. It is old."
NEW = ["Ave Caesar! is a film. ", "It is old."]
FIRST = ["Ave Caesar! ", "is a film. ", "It is old."]
OPTIONS = BuildOptions()
FIRST_OPTIONS = BuildOptions(sentence_rule=FIRST_SENTENCE_RULE)
INDEX, CHUNKS = Path("index"), Path("chunks")


def source(name: str, *ids: str, text: str = TEXT) -> str:
    Path(name).write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i in ids))
    return name


def rule_and_sentences(location: Path = INDEX) -> tuple[str, list[list[str]]]:
    manifest, chunks, _ = contents(location)
    return manifest.sentence_rule, [chunk.sentences() for chunk in chunks]


def test_a_new_index_has_the_new_rule_and_its_manifest_names_it() -> None:
    report = build_index([source("a.jsonl", "1", "2")], INDEX, replace(OPTIONS, workers=1))
    assert rule_and_sentences() == (SENTENCE_RULE, [NEW, NEW])
    assert report.sentences == 4


def test_the_rule_changes_no_fingerprint_but_the_placement() -> None:
    a = source("a.jsonl", "1")
    new = build_index([a], INDEX, OPTIONS)
    first = build_index([a], Path("first"), FIRST_OPTIONS)
    assert new.fingerprint == first.fingerprint
    assert contents(INDEX)[0].placement != contents(Path("first"))[0].placement


def test_a_manifest_that_names_no_rule_means_the_first() -> None:
    build_index([source("a.jsonl", "1")], INDEX, OPTIONS)
    record = json.loads(contents(INDEX)[0].to_json())
    assert record.pop("sentence_rule") == SENTENCE_RULE
    assert Manifest.from_json(json.dumps(record), "here").sentence_rule == FIRST_SENTENCE_RULE


def test_additions_and_synchronisations_continue_with_the_rule_of_their_index() -> None:
    a = source("a.jsonl", "1", "2")
    build_index([a], INDEX, FIRST_OPTIONS)
    add_documents([source("b.jsonl", "3")], INDEX, AddOptions(workers=1))
    assert rule_and_sentences() == (FIRST_SENTENCE_RULE, [FIRST] * 3)
    unchanged = sync_documents([a], INDEX)
    assert (unchanged.replaced, unchanged.unchanged) == (0, 2)
    source("a.jsonl", "1", "2", text=TEXT + " Oh! my.")
    assert sync_documents([a], INDEX).replaced == 2
    changed = [*FIRST[:2], "It is old. ", "Oh! ", "my."]
    rule, changes = rule_and_sentences()
    assert rule == FIRST_SENTENCE_RULE
    assert sorted(changes) == sorted([FIRST, changed, changed])


def test_an_addition_with_another_rule_is_refused() -> None:
    a = source("a.jsonl", "1")
    build_index([a], INDEX, FIRST_OPTIONS)
    with pytest.raises(ArgumentError, match=r"--sentence-rule"):
        add_documents([a], INDEX, AddOptions(sentence_rule=SENTENCE_RULE))


def test_an_index_with_an_unknown_rule_opens_and_is_not_added_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = source("a.jsonl", "1")
    build_index([a], INDEX, OPTIONS)
    monkeypatch.setattr(sentences, "SENTENCE_RULES", (FIRST_SENTENCE_RULE,))
    with open_index(INDEX) as index:
        assert index.manifest.sentence_rule == SENTENCE_RULE
    with pytest.raises(IndexVersionError) as caught:
        add_documents([a], INDEX)
    assert str(caught.value) == (
        'The sentences were made with the rule "sentencex-joined".\nWhere: index\n'
        "Allowed: sentencex\nDo: Use the release that wrote it, or build the index again."
    )


def test_a_folder_of_chunks_keeps_its_rule_until_it_is_loaded() -> None:
    names = [source("a.jsonl", "1"), source("b.jsonl", "2")]
    chunk_sources(names, CHUNKS, FIRST_OPTIONS, share=Share(1, 2))
    chunk_sources(names, CHUNKS, OPTIONS, share=Share(2, 2))  # by a later release
    load_chunks(CHUNKS, INDEX, OPTIONS)
    assert rule_and_sentences() == (FIRST_SENTENCE_RULE, [FIRST, FIRST])
    chunk_sources(names, Path("new"), OPTIONS)
    with pytest.raises(ArgumentError, match=r"--sentence-rule was \"sentencex-joined\""):
        chunk_sources(names, Path("new"), FIRST_OPTIONS)
    load_chunks(Path("new"), INDEX, replace(OPTIONS, overwrite=True))
    assert rule_and_sentences() == (SENTENCE_RULE, [NEW, NEW])


def test_a_folder_of_chunks_from_before_rules_had_names_has_the_first() -> None:
    a = source("a.jsonl", "1")
    chunk_sources([a], CHUNKS, FIRST_OPTIONS)
    options = json.loads((CHUNKS / "manifest.json").read_text())["options"]
    assert "--sentence-rule" not in options
    assert "--sentence-rule" in BuildOptions().signature()


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(AragError) as caught:
        BuildOptions(sentence_rule="points")
    assert str(caught.value) == (
        '--sentence-rule: "points" is not known.\nAllowed: sentencex, sentencex-joined\n'
        "Do: Leave it out, unless an index is to have the sentences of an earlier one."
    )


def test_the_commands_take_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    a = source("a.jsonl", "1")
    rule = ["--sentence-rule", FIRST_SENTENCE_RULE]
    assert run(["index", a, "--to", "index", *rule]) == 0
    assert rule_and_sentences() == (FIRST_SENTENCE_RULE, [FIRST])
    assert run(["chunk", a, "--out", "chunks", *rule], "python -m index_jobs", stages) == 0
    assert run(["load", "chunks", "--to", "second"], "python -m index_jobs", stages) == 0
    assert rule_and_sentences(Path("second")) == (FIRST_SENTENCE_RULE, [FIRST])
    capsys.readouterr()
    assert run(["info", "second"]) == 0
    assert "  sentences    by the rule sentencex\n" in capsys.readouterr().out
