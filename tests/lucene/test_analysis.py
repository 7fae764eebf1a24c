"""Our analysis of text beside that of Lucene."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate, chain

import pytest

from arag_search.query import analysis
from arag_search.query.analysis import terms, tokens
from tests.support.shared_data import DATA

Analysis = tuple[str, bytes, bytes]
"""Terms, a line each; their starts and their ends in UTF-16 units, as the bytes of an array."""


Lucene = Callable[[str], Analysis]


@pytest.fixture(scope="module")
def lucene() -> Lucene:
    """The real analyser.

    A call of Java for every token would take most of the tests' time, so the loop over the tokens
    is put together of Java's own method handles, and runs there.
    """
    from arag_search.engines.lucene import jvm

    jvm.start()
    import jpype
    import jpype.nio

    java = jpype.JClass
    attributes = "org.apache.lucene.analysis.tokenattributes."
    term_type, offset_type = (java(attributes + n + "Attribute") for n in ("CharTerm", "Offset"))
    stream_type = java("org.apache.lucene.analysis.TokenStream")
    text_type, chars_type = java("java.lang.StringBuilder"), java("java.lang.CharSequence")
    ints_type, order = java("java.nio.IntBuffer"), java("java.nio.ByteOrder").nativeOrder()
    nothing, flag, number = (java(f"java.lang.{n}").TYPE for n in ("Void", "Boolean", "Integer"))
    handles, kind = java("java.lang.invoke.MethodHandles"), java("java.lang.invoke.MethodType")
    find, kind = handles.publicLookup().findVirtual, kind.methodType
    analyzer = java("org.apache.lucene.analysis.standard.StandardAnalyzer")()

    def analyse(text: str) -> Analysis:
        stream = analyzer.tokenStream("text", text)
        words = text_type()
        add = find(text_type, "append", kind(text_type, chars_type)).bindTo(words)
        term = stream.getAttribute(term_type)
        steps = [handles.insertArguments(add, 0, chars) for chars in (term, "\n")]
        columns = [bytearray(4 * len(text) + 4) for _ in range(2)]
        for name, column in zip(("startOffset", "endOffset"), columns, strict=True):
            ints = jpype.nio.convertToDirectBuffer(column).order(order).asIntBuffer()
            get = find(offset_type, name, kind(number)).bindTo(stream.getAttribute(offset_type))
            put = find(ints_type, "put", kind(ints_type, number)).bindTo(ints)
            steps.append(handles.filterReturnValue(get, put))
        body = handles.empty(kind(nothing))
        for step in steps:
            body = handles.foldArguments(step.asType(kind(nothing)), body)
        more = find(stream_type, "incrementToken", kind(flag)).bindTo(stream)
        stream.reset()
        handles.whileLoop(None, more, body).invokeWithArguments([])
        stream.end()
        stream.close()
        lines = bytes(words.toString().getBytes("UTF-8")).decode()
        starts, ends = (bytes(column[: 4 * lines.count("\n")]) for column in columns)
        return lines, starts, ends

    return analyse


def ours(texts: list[str]) -> Analysis:
    """What ``lucene`` says of the texts as lines of one, by ``tokens`` of each text alone."""
    words: list[str] = []
    starts, ends = array("i"), array("i")
    base = 0
    for text in texts:
        flat = list(chain.from_iterable(tokens(text)))  # term, start, end, term, start, end, …
        line, first, last = flat[::3], flat[1::3], flat[2::3]
        assert terms(text) == line, ascii(text)
        units = len(text)
        if not text.isascii() and max(text) > "\uffff":
            at = list(accumulate((1 + (c > "\uffff") for c in text), initial=0))
            units, first, last = at[-1], [at[i] for i in first], [at[i] for i in last]
        words += line
        starts.extend(map(base.__add__, first))
        ends.extend(map(base.__add__, last))
        base += units + 1
    return "\n".join([*words, ""]), starts.tobytes(), ends.tobytes()


def assert_as_lucene(lucene: Lucene, texts: list[str]) -> None:
    """``tokens`` and ``terms`` of every text alone are Lucene's.

    Lucene gets all texts in one call, a line each: a line end is in no token, and its scanner
    keeps nothing from one token to the next. It runs while Python does its part.
    """
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(lucene, "\n".join(texts))
        mine = ours(texts)
    if mine != theirs.result():
        for text in texts:
            assert ours([text]) == lucene(text), ascii(text)
        raise AssertionError("the texts differ as lines, none of them alone")


def strings(value: object) -> Iterator[str]:
    """Every string in a JSON value, but keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (s for v in value.values() for s in strings(v))
    elif isinstance(value, list):
        yield from (s for v in value for s in strings(v))


@pytest.mark.shared_data
def test_every_string_of_the_real_corpora_is_as_in_lucene(lucene: Lucene) -> None:
    found: dict[str, None] = {}
    for path in sorted(DATA.glob("*/*.json*")):
        text = path.read_text("utf-8")
        for line in [text] if path.suffix == ".json" else text.splitlines():
            found.update(dict.fromkeys(strings(json.loads(line))))
    assert len(found) > 1000
    assert_as_lucene(lucene, list(found))


@cache
def by_class() -> dict[str, list[str]]:
    """The characters at the ends of every run of a class, and all that lower case changes."""
    classes = analysis._classes()
    codes = {start + d for start in classes.starts for d in (-1, 0) if start}
    codes.update(code for code in range(0x20000) if chr(code).lower() != chr(code))
    out: dict[str, list[str]] = {}
    for code in sorted(codes):
        if not 0xD800 <= code < 0xE000:
            out.setdefault(classes[code], []).append(chr(code))
    return out


def test_every_run_of_a_class_begins_and_ends_where_lucenes_does(lucene: Lucene) -> None:
    around = "{} a{}a 1{}1 א{}א א{} ア{}ア ก{}ก ☺\ufe0f{}😀 🇩{} #{}\u20e3 #{} _{}_"
    every = chain.from_iterable(by_class().values())
    assert_as_lucene(lucene, [around.replace("{}", character) for character in every])


MIXES = (
    *("AHKNUXOQDBLP", "HQDABLPXU", "AN QBLPU", "EMZFGJXTtA", "ZFEJ", "CF#NXGZ", "SVXUAZ", "RXZE"),
    "",
)
"""Classes that the rules speak of together (a space is itself); the last stands for all."""


def test_random_strings_are_as_in_lucene(lucene: Lucene) -> None:
    rng = random.Random(4)
    classes = by_class()
    texts: list[str] = []
    for _ in range(10_000):
        mix = rng.choice(MIXES) or "".join(classes)
        letters = rng.choices(mix, k=rng.randint(1, 12))
        texts.append("".join(rng.choice(classes.get(c) or [c]) for c in letters))
    assert_as_lucene(lucene, texts)


def test_random_long_strings_are_as_in_lucene(lucene: Lucene) -> None:
    rng = random.Random(5)
    classes = by_class()
    texts: list[str] = []
    for _ in range(200):
        mix = rng.choice(MIXES) or "".join(classes)
        few = [rng.choice(classes.get(c) or [c]) for c in rng.choices(mix, k=3)]
        weights = rng.choice([(1, 0, 0), (300, 1, 0), (300, 300, 1), (1, 1, 1)])
        texts.append("".join(rng.choices(few, weights, k=rng.randint(240, 800))))
    assert_as_lucene(lucene, texts)
