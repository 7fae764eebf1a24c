"""Marks of markup within words: what words are read without, and where their places stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.corpus import TextKind, kind_of
from arag_search.query.forms import normal_forms
from arag_search.query.lemmas import NONE
from arag_search.query.markup import unmarked

CASES: dict[TextKind, dict[str, str]] = {
    "markdown": {
        r"max\_result": "max_result",
        r"a\_b\_c": "a_b_c",
        "M&uuml;ller": "muller",
        "M&#252;ller": "muller",
        "M&#xFC;ller": "muller",
        "Zür&shy;ich": "zurich",
        "10&nbsp;cm": "10 cm",
        "**Wärme**pumpe": "warmepumpe",
        "Wärme*pumpe*": "warmepumpe",
        "***a***": "a",
        "<b>Wärme</b>pumpe": "warmepumpe",
        "Wär<wbr>me": "warme",
        "H~2~O": "h2o",
        "H<sub>2</sub>O": "h2o",
        "m^2^": "m2",
        "whale^1^": "whale",
        "whale<sup>12</sup>": "whale",
        # what is no mark within a word
        "**kwargs": "kwargs",
        "src/**/x": "src x",
        r"C:\_tmp": "c _tmp",
        "x**2": "x 2",
        "2*3*4": "2 3 4",
        "a*b*c": "a b c",
        "__init__": "__init__",
        r"`max\_result`": "max _result",
        "~200~300": "200 300",
        "AT&T;": "at t",
        "List<T>s": "list t s",
    },
    "rst": {
        r"**bold**\ ness": "boldness",
        r"re\ *start*\ ed": "restarted",
        r"H\ :sub:`2`\ O": "h2o",
        r"m\ :sup:`2`": "m2",
        r"whale\ :sup:`1`": "whale",
        r"``int``\ s": "ints",
        r"max\_result": "max_result",
        "**a** b": "a b",
    },
    "tex": {
        r"M{\"u}ller": "muller",
        r"M\"uller": "muller",
        r"M\"{u}ller": "muller",
        r"G{\"{o}}del": "godel",
        r"Erd{\H o}s": "erdos",
        r"Erd\H{o}s": "erdos",
        r"na\"{\i}ve": "naive",
        r"Dvo\v{r}\'ak": "dvorak",
        r"Stra{\ss}e": "strasse",
        r"Stra\ss e": "strasse",
        r"K{\o}benhavn": "kobenhavn",
        r"\L{}\'od\'z": "lodz",
        r"{D}eep {L}earning": "deep learning",
        r"Mc{D}onald": "mcdonald",
        r"\textbf{Wär}me": "warme",
        r"Donau\-dampf": "donaudampf",
        r"max\_result": "max_result",
        # commands and formulas stay apart
        r"\frac{a}{b}": "frac a b",
        r"\section{Results}": "section results",
        r"\title one": "title one",
        r"10--20": "10 20",
    },
    "subtitles": {
        "1\n00:00:01,000 --> 00:00:03,500\n<i>quick</i> fox\n": "quick fox",
        "00:12.000 --> 00:14.000 align:start\nthe<00:00:00.320><c> fox</c>": "the fox",
        "<v Roger Bingham>It is": "roger bingham it is",
        '{\\an8}the <font color="#fff">fox</font>': "the fox",
        "dog&nbsp;and": "dog and",
        "at 12:30 --> 5": "at 12 30 5",
    },
    "": {r"max\_result": "max _result", "H~2~O": "h 2 o"},
    "code": {r"max\_result": "max _result", "M&uuml;": "m uuml"},
}


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [(kind, text, words) for kind, cases in CASES.items() for text, words in cases.items()],
)
def test_words_are_read_without_the_marks_of_their_kind(
    kind: TextKind, text: str, words: str
) -> None:
    forms = normal_forms(text, NONE, kind=kind)
    assert " ".join(form.term for form in forms).split("  ")[0].split() == words.split()
    places = [(form.start, form.end) for form in forms if form.term]
    assert all(text[start:end].strip() for start, end in places)


@given(
    st.text(alphabet="aBé1 _.-\n\\*&;uml<>/~^{}:\"'`", max_size=40),
    st.sampled_from(["markdown", "rst", "tex", "subtitles"]),
)
def test_every_character_without_marks_has_its_place(piece: str, kind: TextKind) -> None:
    plain = unmarked(piece, kind)
    if plain is not None:
        assert len(plain.text) == len(plain.starts) == len(plain.ends)
        assert all(
            0 <= start < end <= len(piece)
            for start, end in zip(plain.starts, plain.ends, strict=True)
        )
        assert plain.starts == sorted(plain.starts)


def test_the_kind_is_that_of_the_ending() -> None:
    ids = ("a.md", "b/C.RMD", "a.tex", "a.bib", "a.rst", "a.vtt", "a.srt", "a.py", "a.txt", "md")
    assert [*map(kind_of, ids)] == [
        "markdown", "markdown", "tex", "tex", "rst", "subtitles", "subtitles", "code", "", ""
    ]  # fmt: skip
