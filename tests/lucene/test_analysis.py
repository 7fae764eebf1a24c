"""Our text analysis compared with that of Lucene."""

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
"""Terms, one per line; their starts and their ends in UTF-16 units, as the bytes of an array."""


Lucene = Callable[[str], Analysis]


@pytest.fixture(scope="module")
def lucene() -> Lucene:
    """Return the real analyser.

    A Java call for every token would take most of the tests' time, so the loop over the tokens
    is composed of Java's own method handles, and runs in Java.
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
    handles = java("java.lang.invoke.MethodHandles")
    find = handles.publicLookup().findVirtual
    method_type = java("java.lang.invoke.MethodType").methodType
    analyzer = java("org.apache.lucene.analysis.standard.StandardAnalyzer")()

    def analyse(text: str) -> Analysis:
        stream = analyzer.tokenStream("text", text)
        words = text_type()
        add = find(text_type, "append", method_type(text_type, chars_type)).bindTo(words)
        term = stream.getAttribute(term_type)
        steps = [handles.insertArguments(add, 0, chars) for chars in (term, "\n")]
        columns = [bytearray(4 * len(text) + 4) for _ in range(2)]
        for name, column in zip(("startOffset", "endOffset"), columns, strict=True):
            ints = jpype.nio.convertToDirectBuffer(column).order(order).asIntBuffer()
            get = find(offset_type, name, method_type(number)).bindTo(
                stream.getAttribute(offset_type)
            )
            put = find(ints_type, "put", method_type(ints_type, number)).bindTo(ints)
            steps.append(handles.filterReturnValue(get, put))
        body = handles.empty(method_type(nothing))
        for step in steps:
            body = handles.foldArguments(step.asType(method_type(nothing)), body)
        has_next = find(stream_type, "incrementToken", method_type(flag)).bindTo(stream)
        stream.reset()
        handles.whileLoop(None, has_next, body).invokeWithArguments([])
        stream.end()
        stream.close()
        lines = bytes(words.toString().getBytes("UTF-8")).decode()
        starts, ends = (bytes(column[: 4 * lines.count("\n")]) for column in columns)
        return lines, starts, ends

    return analyse


def ours(texts: list[str]) -> Analysis:
    """Analyse each text alone with ``tokens``, and join the results as ``lucene`` gives them."""
    words: list[str] = []
    starts, ends = array("i"), array("i")
    line_start = 0
    for text in texts:
        fields = list(chain.from_iterable(tokens(text)))  # term, start, end, term, start, end, …
        text_terms, first, last = fields[::3], fields[1::3], fields[2::3]
        assert terms(text) == text_terms, ascii(text)
        units = len(text)
        if not text.isascii() and max(text) > "\uffff":
            offsets = list(accumulate((1 + (c > "\uffff") for c in text), initial=0))
            units, first, last = (
                offsets[-1],
                [offsets[i] for i in first],
                [offsets[i] for i in last],
            )
        words += text_terms
        starts.extend(map(line_start.__add__, first))
        ends.extend(map(line_start.__add__, last))
        line_start += units + 1
    return "\n".join([*words, ""]), starts.tobytes(), ends.tobytes()


def assert_as_lucene(lucene: Lucene, texts: list[str]) -> None:
    """Check that ``tokens`` and ``terms`` of every text alone are those of Lucene.

    Lucene gets all texts in one call, one per line: a line end is in no token, and its scanner
    carries no state from one token to the next. It runs while Python does its part.
    """
    with ThreadPoolExecutor(1) as pool:
        lucene_analysis = pool.submit(lucene, "\n".join(texts))
        our_analysis = ours(texts)
    if our_analysis != lucene_analysis.result():
        for text in texts:
            assert ours([text]) == lucene(text), ascii(text)
        raise AssertionError("the texts differ as lines, none of them alone")


def strings(value: object) -> Iterator[str]:
    """Yield every string in a JSON value except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in strings(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in strings(item))


@pytest.mark.shared_data
def test_every_string_of_the_real_corpora_is_analysed_as_in_lucene(lucene: Lucene) -> None:
    texts: dict[str, None] = {}
    for path in sorted(DATA.glob("*/*.json*")):
        text = path.read_text("utf-8")
        for line in [text] if path.suffix == ".json" else text.splitlines():
            texts.update(dict.fromkeys(strings(json.loads(line))))
    assert len(texts) > 1000
    assert_as_lucene(lucene, list(texts))


@cache
def by_class() -> dict[str, list[str]]:
    """Return the characters at the ends of all runs of a class, and all that lower case changes."""
    classes = analysis._classes()
    codes = {start + distance for start in classes.starts for distance in (-1, 0) if start}
    codes.update(code for code in range(0x20000) if chr(code).lower() != chr(code))
    characters: dict[str, list[str]] = {}
    for code in sorted(codes):
        if not 0xD800 <= code < 0xE000:
            characters.setdefault(classes[code], []).append(chr(code))
    return characters


def test_every_run_of_a_class_begins_and_ends_where_lucenes_does(lucene: Lucene) -> None:
    contexts = "{} a{}a 1{}1 א{}א א{} ア{}ア ก{}ก ☺\ufe0f{}😀 🇩{} #{}\u20e3 #{} _{}_"
    characters = chain.from_iterable(by_class().values())
    assert_as_lucene(lucene, [contexts.replace("{}", character) for character in characters])


MIXES = (
    *("AHKNUXOQDBLP", "HQDABLPXU", "AN QBLPU", "EMZFGJXTtA", "ZFEJ", "CF#NXGZ", "SVXUAZ", "RXZE"),
    "",
)
"""Classes that the rules mention together (a space is itself); the last stands for all."""


def test_random_strings_are_analysed_as_in_lucene(lucene: Lucene) -> None:
    rng = random.Random(4)
    classes = by_class()
    texts: list[str] = []
    for _ in range(10_000):
        mix = rng.choice(MIXES) or "".join(classes)
        letters = rng.choices(mix, k=rng.randint(1, 12))
        texts.append("".join(rng.choice(classes.get(letter) or [letter]) for letter in letters))
    assert_as_lucene(lucene, texts)


def test_random_long_strings_are_analysed_as_in_lucene(lucene: Lucene) -> None:
    rng = random.Random(5)
    classes = by_class()
    texts: list[str] = []
    for _ in range(200):
        mix = rng.choice(MIXES) or "".join(classes)
        alphabet = [rng.choice(classes.get(letter) or [letter]) for letter in rng.choices(mix, k=3)]
        weights = rng.choice([(1, 0, 0), (300, 1, 0), (300, 300, 1), (1, 1, 1)])
        texts.append("".join(rng.choices(alphabet, weights, k=rng.randint(240, 800))))
    assert_as_lucene(lucene, texts)
