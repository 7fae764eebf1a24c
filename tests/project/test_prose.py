"""Guides and docstrings read easily: long sentences, clauses without a noun and more are counted.

Until an issue rewrites the guides, a guide may have 150 words more than in the table of counts, and
all other counts may only fall. ``python -m tests.project.test_prose`` prints the table of today.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.guides import GUIDES, ROOT, prose_of

MORE_WORDS = 150
LONGEST, LONGEST_OF_CODE = 30, 25
"""The most words of a sentence of a guide, and of a docstring."""
ASIDE = 8
"""The most words in parentheses."""
SHORT = 4
"""Up to so many words, a heading or a cell of a table may do without a noun."""


class Counts(NamedTuple):
    """What a guide has outside of its blocks of code: words, and sentences to mend by kind."""

    words: int
    long: int
    headless: int
    asides: int


COUNTS = {
    "README.md": Counts(638, 0, 0, 0),
    "TROUBLE.md": Counts(611, 0, 0, 0),
    "arag_search/README.md": Counts(2413, 0, 0, 0),
    "arag_search/mcp_server/README.md": Counts(1348, 0, 0, 0),
    "arag_search/query/README.md": Counts(2292, 0, 0, 0),
    "arag_search/search/README.md": Counts(1801, 0, 0, 0),
    "configs/README.md": Counts(2038, 0, 0, 0),
    "index_jobs/README.md": Counts(3007, 0, 0, 0),
    "index_jobs/VECTORS.md": Counts(889, 0, 0, 0),
    "opensearch/README.md": Counts(1770, 0, 0, 0),
    "bench/README.md": Counts(800, 0, 0, 0),
    "CHANGELOG.md": Counts(464, 0, 0, 0),
}

DOCSTRINGS = {"arag_search": (3, 0), "index_jobs": (0, 0), "bench": (3, 0)}
"""Their long and their headless sentences. A tree counts as one sentence, as a block of lines."""

STUDIES = tuple(guide for guide in GUIDES if "/studies/" in guide)
ALL_STUDIES, A_STUDY = 15_000, 1_800
"""The most words of all studies together, and of one, which is read in ten minutes."""

CHANGES = "CHANGELOG.md"
"""Every issue adds lines to it, so its words are not bounded."""

_LINK = re.compile(r"!?\[[^\]]*\]\([^)\s]*\)")
_CODE = re.compile(r"`[^`\n]*`")
_NO_PROSE = re.compile(r"(?ms)``[^`]*``|^ *(?:Examples?:|\x08).*")
_RULE_OF_TABLE = re.compile(r"^\|[ |:-]+\|$", re.MULTILINE)
_ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:#+|-|\d+\.)\s+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"”]?\s+(?=[A-Z(\"“\[])")
_PARENTHESES = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
_HEADLESS = re.compile(
    r"""
    (?:^|[.;:]\ )(?:
        Of\ (?:more|several|these|those|each|all|an?\ \w+|the\ \w+)
      | Where\ (?:that|this|it|there|none|nothing)
      | What\ (?:is|was|that|an?|the|it|cannot|may|can)
    )\b
    | \bwhat\ (?:is|was)\ (?:meant|told|new|sought|asked|read|there)\b
    | \b(?:that\ of|those\ of|those\ that|one\ that)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words that stand for a noun that the reader has to guess."""


def paragraphs(prose: str) -> Iterator[str]:
    """Yield paragraphs, headings, items of lists and cells of tables. A piece of code is one word
    in them, and so is a link."""
    text = _CODE.sub("CODE", _LINK.sub("LINK", prose)).replace("*", "")
    text = _ROW.sub(lambda row: row[1].replace("|", "\n\n"), _RULE_OF_TABLE.sub("", text))
    for paragraph in re.split(r"\n\s*\n", _ITEM.sub("\n\n", text)):
        yield " ".join(paragraph.split())


def word_count(text: str) -> int:
    return len(re.findall(r"\S*\w\S*", text))


def faults(prose: str, longest: int = LONGEST) -> Iterator[tuple[str, str]]:
    """Yield the kind of each fault, and the sentence or the aside to mend."""
    for paragraph in paragraphs(prose):
        for sentence in _SENTENCE_END.split(paragraph):
            if word_count(sentence) > longest:
                yield "long", sentence
            if word_count(sentence) > SHORT:
                yield from (("headless", sentence) for _ in _HEADLESS.finditer(sentence))
        for aside in _PARENTHESES.findall(paragraph):
            if word_count(aside) > ASIDE:
                yield "asides", aside


def docstring_faults(code: str) -> Iterator[tuple[str, str]]:
    """Yield the kind of each fault in docstrings, and the line of the docstring with the fault."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for kind, text in faults(_NO_PROSE.sub("CODE", str(node.value.value)), LONGEST_OF_CODE):
                yield kind, f"{node.lineno}: {text}"


def counts_of(prose: str) -> Counts:
    kinds = [kind for kind, _ in faults(prose)]
    words = sum(map(word_count, paragraphs(prose)))
    return Counts(words, *(kinds.count(kind) for kind in Counts._fields[1:]))


def test_all_guides_are_counted() -> None:
    assert {*COUNTS} == {CHANGES, *GUIDES} - {*STUDIES}


def test_all_studies_together_have_few_words() -> None:
    assert sum(counts_of(prose_of(study)).words for study in STUDIES) <= ALL_STUDIES


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_is_read_in_ten_minutes_and_has_no_riddles(study: str) -> None:
    assert counts_of(prose_of(study)).words <= A_STUDY
    assert list(faults(prose_of(study))) == []


@pytest.mark.parametrize("guide", COUNTS)
def test_a_guide_has_few_more_words_and_no_more_riddles_than_before(guide: str) -> None:
    prose = prose_of(guide)
    now, before = counts_of(prose), COUNTS[guide]
    assert guide == CHANGES or now.words <= before.words + MORE_WORDS
    for kind, count in now._asdict().items():
        if kind != "words" and count > getattr(before, kind):
            sentences = "\n".join(f"- {text}" for of_kind, text in faults(prose) if of_kind == kind)
            pytest.fail(f"{guide} had {getattr(before, kind)} {kind}; now {count}:\n{sentences}")


@pytest.mark.parametrize("package", DOCSTRINGS)
def test_docstrings_have_no_more_long_sentences_and_riddles_than_before(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    faulty = [(file, *fault) for file in files for fault in docstring_faults(file.read_text())]
    for kind, most in zip(("long", "headless"), DOCSTRINGS[package], strict=True):
        listed = [f"{file}:{text}" for file, of_kind, text in faulty if of_kind == kind]
        assert len(listed) <= most, "\n".join([f"{most} were {kind}, now {len(listed)}:", *listed])


@pytest.mark.parametrize(("text", "kinds"), [
    ("a " * 25, []), ("a " * 26, ["long"]), ("a " * 24 + "``b c``", []),
    ("It is that of ``b``.", ["headless"]), ("Examples:\n" + "a " * 26, []),
])  # fmt: skip
def test_long_sentences_and_riddles_of_docstrings_are_seen(text: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in docstring_faults(f'"""A b.\n\n{text}"""')] == kinds


@pytest.mark.parametrize(
    ("prose", "kinds"),
    [
        ("It is so. Of more, an answer comes with a line.\n\n- What is meant is taken now.\n",
         ["headless", "headless"]),
        (f"{'a ' * 30}.", []),
        (f"{'a ' * 31}.", ["long"]),
        (f"| {'a ' * 16} | {'b ' * 16} |\n|---|---|\n- {'c ' * 16}\n- {'d ' * 16}\n", []),
        (f"{'a ' * 29}`git log --stat` [two words](a/b.md).", ["long"]),
        ("Yes (as a b c d e f g h) it is so.", ["asides"]),
        ("Yes (as a b c (d). E f g h) it is so.", ["asides"]),
        ("Yes (as a b c d e f g) it is so.", []),
    ],
)  # fmt: skip
def test_long_sentences_clauses_without_a_noun_and_asides_are_seen(
    prose: str, kinds: list[str]
) -> None:
    assert [kind for kind, _ in faults(prose)] == kinds


if __name__ == "__main__":
    for name in COUNTS:
        print(f'    "{name}": Counts{tuple(counts_of(prose_of(name)))},')
