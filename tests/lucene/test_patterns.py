"""Patterns on a real index: a result is that of a scan of all texts."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.query.problems import NOTE_UNMARKED, QueryError
from arag_search.query.regexes import Stopwatch
from arag_search.search.finding import resolve
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

CODE = {
    "models.txt": "class User:\n    pass\n\ndef get_user_by_id(id):\n    return User(id)\n",
    "views.txt": "from models import get_user_by_id\n\ndef show(request):\n    return 200\n",
    "notes.md": "# Notes\n\nThe settings are in /etc/nginx/conf.d. See get_user_by_name().\n",
    "opera.md": "# Griselda\n\nAn opera of 1735. Vivaldi wrote it. It was first heard in Venice.\n",
    "long.txt": "a" * 253 + "needle",  # a word that the analyser cuts
}


@pytest.fixture(name="index", scope="module")
def index_of_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("code")
    for name, text in CODE.items():
        (folder / name).write_text(text, encoding="utf-8")
    location = tmp_path_factory.mktemp("index") / "code"
    build_index([str(folder)], location, BuildOptions(language="en"))
    with open_index(location) as index:
        yield index


def found(index: Index, query: str, **options: object) -> set[str]:
    return {hit.doc_id for hit in index.logical_search(query, top_k=50, **options).hits}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern",
    [
        r"def \w+_by_id\(",
        r"get_user_by_(id|name)",
        "Vivaldi",
        r"\d{3}",
        r"\/etc\/nginx",
        "^class",
        "needle",
        "é",
    ],
)
def test_a_pattern_alone_finds_what_a_scan_finds(index: Index, pattern: str) -> None:
    expected = {chunk.doc_id for chunk in index.scan() if re.search(pattern, chunk.content)}
    assert found(index, f"content:/{pattern}/") == expected


def test_a_pattern_narrows_words_and_is_exact_under_not(index: Index) -> None:
    assert found(index, r"user AND /def \w+_by_id\(/") == {"models.txt"}
    assert found(index, r"user AND NOT /def \w+_by_id\(/") == {"views.txt", "notes.md"}
    assert found(index, "opera AND /vivaldi/") == set()
    assert found(index, "opera AND /vivaldi/i") == {"opera.md"}


def test_a_sentence_must_match_by_itself(index: Index) -> None:
    query = r"opera AND /\d{4}.*Venice/"
    assert found(index, query) == {"opera.md"}
    assert found(index, query, granularity="sentence") == set()
    assert found(index, r"opera AND /\d{4}/", granularity="sentence") == {"opera.md"}


def test_the_match_is_shown_and_marked(index: Index) -> None:
    result = index.logical_search(r"opera AND /V[aei]n\w+/")
    (hit,) = result.hits
    assert "Venice" in hit.snippet
    assert result.highlighter is not None
    chunk = index.chunk_read([hit.id])[0].chunk
    sentences = chunk.sentences()
    numbers = range(len(sentences))
    marks = result.highlighter.highlights(chunk.title, chunk.content, chunk.sentence_ends, numbers)
    shown = " ".join(text.strip() for text in sentences)
    assert {shown[start:end] for start, end in marks.snippet} == {"opera", "Venice"}


def test_an_alternative_that_is_a_pattern_is_counted_and_found(index: Index) -> None:
    assert found(index, r"vivaldi OR /^class/") == {"opera.md", "models.txt"}


def test_what_a_pattern_excludes_is_not_near(index: Index) -> None:
    query = r"user AND nowhere NOT /def \w+_by_id\(/"
    near = {hit.doc_id for hit in index.logical_search(query, relax=True).nearest}
    assert near == {"views.txt", "notes.md"}
    query = r"get_user_by_id AND nowhere NOT /def \w+_by_id\(/"
    assert "models.txt" not in {h.doc_id for h in index.logical_search(query, relax=True).nearest}


def test_within_a_part_only_its_passages_are_read(index: Index) -> None:
    part = index.within("doc_id:models.txt")
    assert found(part, "/get_user/") == {"models.txt"}
    assert part.logical_search("/get_user/").total == 1


def test_too_many_candidates_are_refused_with_what_to_add(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "MAX_VERIFIED", 1)
    with pytest.raises(QueryError, match=r"more than 1 passages.*Add a word or phrase with AND"):
        index.logical_search("/get_user/")
    assert found(index, "opera AND /Griselda|Vivaldi/") == {"opera.md"}


@pytest.mark.parametrize("query", ["opera OR  -title:/x/", '"/x/" OR (((/x/)))'])
def test_a_refused_pattern_is_named_at_its_column_in_the_query_as_it_was_written(
    index: Index, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(resolve, "MAX_VERIFIED", 1)
    with pytest.raises(QueryError) as refusal:
        index.logical_search(query)
    (problem,) = refusal.value.problems
    assert problem.column == query.rindex(problem.piece) + 1


def test_a_pattern_that_takes_too_long_is_refused_and_not_answered_in_part(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arag_search.search.index.Stopwatch", lambda: Stopwatch(0.0))
    with pytest.raises(QueryError, match="takes too long"):
        index.logical_search("opera AND /Vivaldi/")


def test_a_query_that_finds_nothing_counts_only_what_is_known(index: Index) -> None:
    feedback = index.logical_search("opera AND /Mozart/", relax=True).feedback
    assert str(feedback) == "Alone: opera 1."
    nothing = index.logical_search("/Mozart/").feedback
    assert str(nothing) == "Alone: /Mozart/ occurs nowhere."


def test_presets_that_reproduce_a_paper_have_no_patterns(index: Index) -> None:
    with pytest.raises(QueryError, match="patterns and fuzzy words are off here"):
        index.logical_search("/vivaldi/", as_written=True)


def test_a_path_is_a_pattern_with_a_note(index: Index) -> None:
    result = index.logical_search("/etc/nginx/")
    assert [hit.doc_id for hit in result.hits] == ["notes.md"]
    assert result.notes[0] == (
        '/etc/nginx/ was searched as a pattern; for the text write "etc/nginx" in quotes.'
    )


def test_patterns_that_take_long_to_mark_leave_the_passages_without_marks(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(15):
        (folder / f"{number}.txt").write_text(f"x{number} " + "ab" * 1_000)
    build_index(
        [str(folder)], tmp_path / "index", BuildOptions(language="none", chunk_tokens=4_000)
    )
    slow = " OR ".join(rf"/x|(?:a|a|ab)+(?:b|c)*{digit}c\d/" for digit in range(8))
    with open_index(tmp_path / "index") as index:
        began = time.process_time()
        result = index.logical_search(slow, top_k=15)
        marks = [result.highlights(hit) for hit in result.hits]
        assert time.process_time() - began < 4
        assert len(result.hits) == len(marks) == 15
        assert result.notes[-1] == NOTE_UNMARKED
        fast = index.logical_search("/x/", top_k=15)
        assert NOTE_UNMARKED not in fast.notes
        assert all((shown := fast.highlights(hit)) and shown.snippet for hit in fast.hits)
