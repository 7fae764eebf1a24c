"""Documents with an outline are cut by it; passages hold whole units, and know their place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arag_search.corpus import (
    NO_OUTLINE,
    Chunk,
    Document,
    Outline,
    PassageUnit,
    Unit,
    UnitKind,
    nfc,
)
from arag_search.tokens import count_tokens
from index_jobs.cutting.chunking import STRUCTURE_TOKENS, cut

WORDS = "A setting of the server that is read when it starts. "


def cut_file(text: str, *outline: Unit, id: str = "a.html", tokens: int = 1_000) -> list[Chunk]:
    document = Document(id, "Settings", text, is_file=True, outline=outline)
    return cut(document, shard=0, number=0, chunk_tokens=tokens)[0]


def entries(count: int, sentences: int) -> tuple[str, Outline]:
    """Return a list of settings, each of so many sentences of 12 tokens, under a heading."""
    lines = ["# Settings", "## Memory"]
    units = [Unit(0, 2 + 3 * count, "section", "Settings")]
    units.append(Unit(1, 2 + 3 * count, "section", "Memory"))
    for number in range(count):
        units.append(Unit(len(lines), len(lines) + 3, "entry", f"size_{number} (integer)"))
        lines += [f"size_{number} (integer)", WORDS * sentences, ""]
    return "\n".join(lines), tuple(units)


def test_no_entry_that_fits_is_cut_and_short_ones_are_joined() -> None:
    text, outline = entries(20, 10)
    chunks = cut_file(text, *outline)
    assert "".join(chunk.content for chunk in chunks) == text
    names = [unit.name for chunk in chunks for unit in chunk.outline.units]
    assert names == ["Settings", "Memory", *(f"size_{number} (integer)" for number in range(20))]
    assert all(chunk.content.startswith("size_") for chunk in chunks[1:])
    assert all(count_tokens(chunk.content) <= STRUCTURE_TOKENS for chunk in chunks)
    assert {chunk.outline.path for chunk in chunks} == {"Memory"}  # the title is not repeated
    assert len(chunks) == 7


def test_an_entry_longer_than_neighbours_may_be_together_is_whole_and_on_the_path() -> None:
    text, outline = entries(2, 60)
    chunks = cut_file(text, *outline)
    assert [chunk.outline.path for chunk in chunks] == [
        f"Memory > size_{number} (integer)" for number in range(2)
    ]
    assert chunks[0].content.startswith("# Settings\n## Memory\nsize_0")  # no heading is alone
    assert [chunk.outline.line for chunk in chunks] == [1, 6]
    assert chunks[1].outline.units[0][:2] == (0, len(chunks[1].sentence_ends))


def test_an_entry_that_does_not_fit_is_cut_at_sentences_and_every_part_names_it() -> None:
    text, outline = entries(1, 200)
    chunks = cut_file(text, *outline)
    assert len(chunks) > 3
    assert {chunk.outline.path for chunk in chunks} == {"Memory > size_0 (integer)"}
    assert [bool(chunk.outline.units) for chunk in chunks] == [True, *[False] * (len(chunks) - 1)]


def test_a_function_is_not_cut_and_keeps_its_indentation() -> None:
    body = "        value = compute(first, second)  # a comment\n" * 40
    text = f"class Trainer:\n    def train(self):\n{body}\n    def test(self):\n{body}"
    outline = (
        Unit(0, 84, "section", "class Trainer"),
        Unit(1, 42, "entry", "def train"),
        Unit(43, 84, "entry", "def test"),
    )
    chunks = cut_file(text, *outline, id="src/trainer.py")
    assert [chunk.outline.path for chunk in chunks] == [
        "class Trainer > def train",
        "class Trainer > def test",
    ]
    assert chunks[1].content.startswith("    def test(self):\n        value")
    assert (chunks[1].outline.line, chunks[1].outline.units) == (44, ((0, 41, "def test"),))
    assert len(chunks[1].sentence_ends) == 41


def test_lines_are_sentences_in_blocks_and_prose_around_them_is_cut_as_prose() -> None:
    text = "## Use\nRun it once. Then read\nthe log.\n$ make\n$ make install\n}\nThat is all.\n"
    outline = (Unit(0, 7, "section", "Use"), Unit(3, 6, "block"))
    (chunk,) = cut_file(text, *outline)
    assert chunk.sentences() == [
        "## Use\n",
        "Run it once. ",
        "Then read\nthe log.\n",
        "$ make\n",
        "$ make install\n}\n",
        "That is all.\n",
    ]
    assert chunk.outline.units == (PassageUnit(0, 6, "Use"),)


def test_a_passage_of_links_is_an_index_where_the_document_has_the_field() -> None:
    links = "".join(f"- name_{number}\n" for number in range(40))
    text = f"## Index\n{links}## Text\n{WORDS * 30}\n"
    outline = (
        Unit(0, 41, "section", "Index"),
        Unit(1, 41, "index"),
        Unit(41, 43, "section", "Text"),
    )
    document = Document("a.html", "T", text, {"passage_kind": "text"}, outline=outline)
    kinds = [
        c.metadata["passage_kind"] for c in cut(document, shard=0, number=0, chunk_tokens=300)[0]
    ]
    assert (kinds[0], kinds[-1]) == ("index", "text")
    (without, *_) = cut_file(text, *outline)
    assert without.metadata == {}


@pytest.mark.parametrize(("is_file", "line"), [(True, 3), (False, 0)])
def test_prose_is_cut_as_before_and_only_files_have_lines(is_file: bool, line: int) -> None:
    text = f"{WORDS * 40}\n\n{WORDS * 40}"
    document = Document("a.txt", "T", text, is_file=is_file)
    chunks = cut(document, shard=0, number=0, chunk_tokens=STRUCTURE_TOKENS + 81)[0]
    assert [chunk.outline.line for chunk in chunks][1] == line
    assert is_file or all(chunk.outline == NO_OUTLINE for chunk in chunks)


KINDS: Sequence[UnitKind] = ("section", "entry", "block", "index")
LINES = st.lists(
    st.sampled_from(
        ["", "   ", "# H", "word (integer)", "}", "  x = 1", WORDS * 9, "é" * 9, "\ud83c"]
    ).filter(lambda line: line != "\ud83c"),
    max_size=40,
)


@st.composite
def outlined(draw: st.DrawFn) -> tuple[str, Outline]:
    """Draw a text and an outline of nested units."""
    lines = draw(LINES)
    units: list[Unit] = []

    def fill(first: int, end: int, depth: int) -> None:
        while first < end and depth < 5 and draw(st.booleans()):
            start = draw(st.integers(first, end - 1))
            stop = draw(st.integers(start + 1, end))
            kind = draw(st.sampled_from(KINDS))
            units.append(Unit(start, stop, kind, draw(st.sampled_from(["", "a name"]))))
            fill(start, stop, depth + 1)
            first = stop

    fill(0, len(lines) + draw(st.integers(0, 1)), 0)
    return "\n".join(lines), tuple(units)


@given(outlined(), st.integers(16, 400), st.sampled_from(["a.html", "a.py"]))
@example(("", (Unit(0, 1, "section"),)), 16, "a.html")
@example(("\n", (Unit(0, 2, "section"),)), 16, "a.html")
@example(("\n\n  \nword", (Unit(0, 2, "entry", "a"), Unit(2, 4, "section", "b"))), 16, "a.md")
def test_whatever_the_outline_no_text_is_lost_and_units_are_within_their_passage(
    document: tuple[str, Outline], tokens: int, id: str
) -> None:
    text, outline = document
    chunks = cut_file(text, *outline, id=id, tokens=tokens)
    assert "".join(chunk.content for chunk in chunks) == nfc(text)
    for chunk in chunks:
        assert "".join(chunk.sentences()) == chunk.content
        assert count_tokens(chunk.content) <= tokens
        assert all(chunk.sentences())
        assert (
            not outline
            or all(not sentence.isspace() for sentence in chunk.sentences())
            or (text.isspace())
        )
        for unit in chunk.outline.units:
            assert 0 <= unit.first < unit.end <= len(chunk.sentence_ends)
        starts = [unit.first for unit in chunk.outline.units]
        assert starts == sorted(starts)
