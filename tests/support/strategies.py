"""Hypothesis strategies: corpora, and trees of every kind to run on them or to print.

Corpora and trees share a small vocabulary, so that queries have hits. With ``awkward``, the texts
of a tree also include texts that are hard to write in the query language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from arag_search.corpus import (
    NO_OUTLINE,
    PATH_MARK,
    Chunk,
    MetadataValue,
    PassageOutline,
    PassageUnit,
    ordinal_of,
)
from arag_search.errors import ArgumentError
from arag_search.query.fields import MetadataType, Schema
from arag_search.query.operators import DEMOTE, NOT, PREFER
from arag_search.query.tree import (
    EXACT_MARK,
    Fuzzy,
    KeywordEquals,
    Leaf,
    Modifier,
    Node,
    Phrase,
    Prefix,
    Range,
    Regex,
    Term,
    TextField,
    all_of,
    any_of,
    condition_of,
    leaves,
    scores,
    unweighted,
    weighted,
)
from tests.support.oracle.engine import LANGUAGE

METADATA: Mapping[str, MetadataType] = {
    "lang": "keyword",
    "topics": "keyword",
    "year": "number",
    "published": "date",
    "draft": "boolean",
}
SCHEMA = Schema(METADATA, language=LANGUAGE)

# Frequent words first; a text takes the first ones most often.
WORDS = (
    "opera", "Vivaldi", "born", "venice", "libretto", "in", "librettist", "it's", "it’s", "1678",
    "opera's", "Vivaldi’s", "opera’s", "venice's",
    "season", "seasons", "COVID-19", "AT&T", "the", "rock'n'roll", "o’neil", "O'Neil", "U.S.",
    "rock’n'roll", "3.14", "東京", "カタカナ", "Straße", "café", "naïve", "lay-abbot",
    "word_joined", "한국어", "café’s", "in's", "operas", "librettos", "cafe", "bearing", "Venices",
    "getUserById", "get", "user", "pg.word_joined.max", "C++", "C#", "--flag", "flag", "DataFrame",
    "data", "frame", "ﬁnance", "ｖｉｖａｌｄｉ", "Ёлка", "елка", "x\u00adyz", "xyz", "rockets’",
    "O′Neil", "m²", "№5", "ภาษาไทย", "ไทย", "검색을", "검색",
)  # fmt: skip
COMMON = WORDS[:5]
PREFIXES = (
    "ope", "libr", "libret", "seaso", "it's", "167", "o'nei", "viv", "nothing", "ven", "rock'n’r",
)  # fmt: skip
FUZZY = ("vivladi", "opra", "venise", "librettists", "getUserByld", "naive", "seaso", "cafés")
PATTERNS = (
    r"opera", r"\bborn\b", r"[A-Z]\w+s\b", r"(?:ven|viv)\w*", r"\d{2,4}", r"^\W", r"\.$", r"^$",
    r"x", r"born in\s", r"\sborn\s", r"in(?= venice)", r"\(?opera born\s", r"(\w)\1", r"a/b",
    r"\p{Lu}.*é", r"ldi|(?:enic|born)(?:e|in)", r"born in v?", r"\B(?:brett?o|bretti)\w", r"café",
)  # fmt: skip
KEYWORDS = ("en", "de", "en GB", "En", "x:y", "it's")
NUMBERS = (-3.0, 0.0, 1670.0, 1678.0, 1678.5, 1680.0, 2e9)
DATES = (
    "1999", "2001", "2001-05", "2001-05-31", "2001-05-31T12:00", "2001-06", "1950-01-01",
    "2001-05-31T23:30-02:00", "2001-06-01T00:30:00+02:00", "2001-05-31T22:30Z",
)  # fmt: skip
FACTORS = (0.001, 0.2, 0.4, 0.5, 0.5, 0.6, 0.999)
WEIGHTS = (0.1, 0.3, 0.5, 0.7, 2.0, 2.5, 3.0, 10.0)

AWKWARD = (
    "AND", "OR", "NOT", "PREFER", "DEMOTE", "DEMOTE^0.2", "PREFER^2", "\\DEMOTE", "&&", "||",
    "TO", "and", "!x1", "-x1", "--x1", "a:b", "title:x", "x1:",
    'say "x1"', '"', "x1*", "w*x", "x1?", "a\\b", "x1\\", "\\", "(a)", "((x1", "[a TO b]", "{x1}",
    "/re/", "a/b", "/x1", "x1/", "^2", "a^2", "~", "a~2", "x1^", "it's", "’tis", "rock'n’roll",
    "'x1'", "東京 大阪", "カタカナ語", "e\u0301t\u0301", "İstanbul", "ß", "😀 smile", "a  b",
    " lead", "trail ", "a\tb", "a\nb", "x\u200dy", "\u202eabc", "\u200bx1", "+a", "<a", ">=1", "=x",
    "*:*", "a,b", "...", "x1...", "AT&&T", "Jeopardy!", "a||b", "\u00a0x1", "\ufeffx1", "@x1",
    "x1 AND NOT y1", "\\AND", "-", "!", "a - b", "١٢٣", "שלום", "ab'c", "a'", "x1;", "%x1", "𝒳y",
)  # fmt: skip

SPECIAL = "aaabb1xx-!:\"*?\\()[]{}^~/ '’&|+<>=#@,;.…東\u0301\t"
DEPTHS = (0, 1, 2, 2, 3, 3)
FIELDS: tuple[TextField, ...] = (None, None, None, "title", "content")

T = TypeVar("T")
Scope = tuple[Node | Modifier, ...]
"""The parts of a filter."""


# Corpora


def corpus(random: Random, documents: int) -> list[Chunk]:
    """Draw a corpus in order: documents of one to three chunks, some empty, long or duplicated."""
    chunks: list[Chunk] = []
    for number in range(documents):
        if chunks and random.random() < 0.15:
            old = random.choice(chunks).doc_id
            copied = [chunk for chunk in chunks if chunk.doc_id == old]
            contents = [chunk.sentences() for chunk in copied]
            title, metadata = copied[0].title, copied[0].metadata
        else:
            contents = [_sentences(random) for _ in range(random.choice((1, 1, 1, 2, 3)))]
            title = _text(random, random.choice((0, 0, 1, 2, 5)))
            metadata = _metadata(random)
        chunks += document_chunks(number, title, contents, metadata)
    return chunks


def corpora(max_documents: int = 60) -> st.SearchStrategy[list[Chunk]]:
    """Draw corpora of one document or more."""

    def seeded(seed: int, documents: int) -> list[Chunk]:
        return corpus(Random(seed), documents)

    return st.builds(seeded, _seeds(), st.integers(1, max_documents))


def document_chunks(
    number: int,
    title: str,
    contents: Sequence[Sequence[str]],
    metadata: Mapping[str, MetadataValue],
) -> list[Chunk]:
    """Build the chunks of document ``d<number>`` from the sentences of each chunk."""
    chunks: list[Chunk] = []
    for part, sentences in enumerate(contents):
        ends: list[int] = []
        for sentence in sentences:
            ends.append((ends[-1] if ends else 0) + len(sentence))
        chunks.append(
            Chunk(
                id=f"d{number}.{part + 1}",
                doc_id=f"d{number}",
                title=title,
                content="".join(sentences),
                part=part + 1,
                parts=len(contents),
                ordinal=ordinal_of(0, number, part),
                sentence_ends=tuple(ends),
                metadata=metadata,
                outline=_outline(Random(1_000 * number + part), len(ends)),
            )
        )
    return chunks


def _outline(random: Random, sentences: int) -> PassageOutline:
    """Draw where a passage stands: every other one has no outline."""
    if random.random() < 0.5:
        return NO_OUTLINE
    path = PATH_MARK.join(_text(random, random.choice((1, 2))) for _ in range(random.randrange(3)))
    starts = sorted(random.sample(range(sentences), k=min(sentences, random.randrange(3))))
    units = (PassageUnit(at, sentences, _text(random, random.choice((1, 3)))) for at in starts)
    beside = (_text(random, 2),) if random.random() < 0.3 else ()
    return PassageOutline(path, random.choice((0, 1, 40)), tuple(units), beside)


def _text(random: Random, length: int) -> str:
    if random.random() < 0.4:
        return " ".join(random.choices(COMMON, k=length))
    return " ".join(WORDS[int(len(WORDS) * random.random() ** 2)] for _ in range(length))


def _sentences(random: Random) -> list[str]:
    if random.random() < 0.05:
        return []
    long = random.random() < 0.1
    count = random.choice((1, 2, 3, 8))
    lengths = [random.choice((20, 45, 90)) if long else random.randint(1, 9) for _ in range(count)]
    sentences = [_text(random, length) + ". " for length in lengths]
    if random.random() < 0.1:
        sentences.append("… ")
    return sentences


def _metadata(random: Random) -> Mapping[str, MetadataValue]:
    values: dict[str, MetadataValue] = {}
    if random.random() < 0.8:
        values["lang"] = random.choice(KEYWORDS)
    if random.random() < 0.5:
        values["topics"] = tuple(random.sample(KEYWORDS, random.randint(0, 3)))
    if random.random() < 0.6:
        values["year"] = random.choice((*NUMBERS, 1678, (1670, 2e9)))
    if random.random() < 0.6:
        values["published"] = random.choice((*DATES, ("1999", "2001-05-31")))
    if random.random() < 0.6:
        values["draft"] = random.choice((True, False, False, (True, False)))
    return values


# Trees


def trees(
    *, awkward: bool = False, metadata: bool = True, max_leaves: int = 8, max_prefixes: int = 4
) -> st.SearchStrategy[Node]:
    """Draw trees of every kind of node over SCHEMA, within the limits of the query language.

    ``awkward`` is for printing and parsing: the texts then include AWKWARD ones and any Unicode,
    and the weights any valid weight. A failing tree shrinks in its number of leaves and depth.
    """

    def tree(seed: int, leaves: int, depth: int) -> Node:
        return _TreeMaker(Random(seed), awkward, metadata, leaves, max_prefixes).node(depth)

    return st.builds(tree, _seeds(), st.integers(1, max_leaves), st.sampled_from(DEPTHS))


def scopes() -> st.SearchStrategy[Scope]:
    """Draw scopes of up to two inclusions and two exclusions, at least one of them."""

    def scope(seed: int) -> Scope:
        random = Random(seed)
        maker = _TreeMaker(random, awkward=False, metadata=True, leaves=6, prefixes=0)
        include = tuple(maker.condition() for _ in range(random.randint(0, 2)))
        least = 0 if include else 1
        excluded = (maker.condition() for _ in range(random.randint(least, 2)))
        return (*include, *(Modifier(NOT, node) for node in excluded))

    return st.builds(scope, _seeds())


def queried_keywords() -> st.SearchStrategy[tuple[str, ...]]:
    """Draw lists of keywords: words, phrases of common words, prefixes, and awkward texts."""
    keyword = st.one_of(
        st.sampled_from(WORDS),
        st.lists(st.sampled_from(COMMON), min_size=1, max_size=3).map(" ".join),
        st.sampled_from(PREFIXES),
        st.sampled_from(AWKWARD),
    )
    return st.lists(keyword, min_size=1, max_size=4).map(tuple)


def _seeds() -> st.SearchStrategy[int]:
    # If every choice within a tree were its own draw, a tree would take 10 ms.
    return st.integers(0, 1 << 48)


class _TreeMaker:
    """A maker of random nodes, which draws invalid nodes again or leaves them out."""

    def __init__(
        self, random: Random, awkward: bool, metadata: bool, leaves: int, prefixes: int
    ) -> None:
        self.random = random
        self.awkward = awkward
        self.metadata = metadata
        self.leaves_left = leaves
        self.prefixes_left = prefixes

    def node(self, depth: int) -> Node:
        """Draw a node with at most ``depth`` groups above its leaves."""
        kind = self.random.choice(("leaf", "and", "or", "or", "modified", "modified"))
        if depth == 0 or kind == "leaf" or self.leaves_left < 2:
            return self._weighted(self._leaf())
        children = [self.node(depth - 1)]
        while self.leaves_left > 0 and self.random.random() < 0.7:
            children.append(self.node(depth - 1))
        if self.leaves_left > 0 and self.random.random() < 0.2:
            children.append(self._again(self.random.choice(children)))
        if kind == "or":
            return self._weighted(any_of(*children))
        modifiers: list[Modifier] = []
        while kind == "modified" and self.leaves_left > 0 and self.random.random() < 0.8:
            modifiers.append(self._valid(lambda: self._modifier(depth - 1)))
        return self._weighted(all_of(*children, *modifiers))

    def condition(self) -> Node:
        """Draw a node of metadata clauses only."""
        clauses = [self._metadata_leaf() for _ in range(self.random.randint(1, 2))]
        if self.random.random() < 0.5:
            return any_of(*clauses)
        excluded = [Modifier(NOT, self._metadata_leaf())] if self.random.random() < 0.5 else []
        return all_of(*clauses, *excluded)

    def _modifier(self, depth: int) -> Modifier:
        """Draw a NOT, PREFER or DEMOTE. A PREFER of metadata alone is invalid."""
        child = self.node(depth)
        operator = self.random.choice((NOT, PREFER, DEMOTE))
        if operator is PREFER:
            return Modifier(PREFER, child)
        child = unweighted(condition_of(child))
        if operator is DEMOTE:
            return Modifier(DEMOTE, child, self.random.choice(FACTORS))
        return Modifier(NOT, child)

    def _again(self, node: Node) -> Node:
        """Repeat a node, perhaps with another weight, because engines merge equal clauses."""
        repeated = list(leaves(node))
        prefixes = sum(isinstance(leaf, Prefix | Fuzzy) for leaf in repeated)
        if prefixes > self.prefixes_left:
            return self._weighted(self._leaf())
        self.leaves_left -= len(repeated)
        self.prefixes_left -= prefixes
        return self._weighted(node)

    def _leaf(self) -> Leaf:
        self.leaves_left -= 1
        kind = self.random.random()
        if kind < 0.2 and self.metadata:
            return self._metadata_leaf()
        if kind < 0.26 and self.metadata:
            pattern = self._text(PATTERNS) if self.awkward else self.random.choice(PATTERNS)
            return self._pattern(pattern.strip() or "x")
        if kind < 0.3 and self.prefixes_left > 0:
            self.prefixes_left -= 1
            if self.random.random() < 0.3:
                return self._valid(self._fuzzy)
            return self._valid(lambda: Prefix(self._text(PREFIXES), self._field()))
        if kind < 0.6:
            slop = self.random.choice((0, 0, 1, 2, 3, 5, 20))
            return self._valid(lambda: _phrase(self._phrase_text(), slop, self._field()))
        return self._valid(lambda: Term(self._text(WORDS), self._field()))

    def _pattern(self, pattern: str) -> Leaf:
        try:
            return Regex(pattern, self.random.random() < 0.3, self._field())
        except ArgumentError:  # no regular expression
            return Regex("x")

    def _metadata_leaf(self) -> Leaf:
        kind = self.random.randint(0, 5)
        if kind == 0:
            return KeywordEquals("doc_id", f"d{self.random.randint(0, 12)}")
        if kind <= 2:
            name = self.random.choice(("lang", "topics"))
            return self._valid(lambda: KeywordEquals(name, self._text(KEYWORDS)))
        if kind == 5:
            return KeywordEquals("draft", self.random.choice(("true", "false")))
        inclusive = self.random.random() < 0.5, self.random.random() < 0.5
        if kind == 3:
            return self._valid(
                lambda: Range("year", "number", self._number(), self._number(), *inclusive)
            )
        return self._valid(
            lambda: Range("published", "date", self._date(), self._date(), *inclusive)
        )

    def _date(self) -> str | None:
        return self.random.choice((None, *DATES))

    def _number(self) -> str | None:
        if self.awkward and self.random.random() < 0.3:
            return repr(self.random.choice((-1, 1)) * 10 ** self.random.uniform(-30, 300))
        return self.random.choice((None, *map(str, NUMBERS)))

    def _weighted(self, node: Node) -> Node:
        if not scores(node) or self.random.random() < 0.6:
            return node
        weight = self.random.choice(WEIGHTS)
        if self.awkward and self.random.random() < 0.5:
            weight = 10 ** self.random.uniform(-2, 3)
        try:
            return weighted(node, weight)
        except ArgumentError:
            return node

    def _valid(self, make: Callable[[], T]) -> T:
        while True:
            try:
                return make()
            except ArgumentError:
                continue

    def _fuzzy(self) -> Leaf:
        return Fuzzy(self._text(FUZZY), self.random.choice((1, 2)), self._field())

    def _text(self, usual: Sequence[str]) -> str:
        kind = self.random.randint(0, 4) if self.awkward else 0
        if kind == 1:
            return self.random.choice(AWKWARD)
        if kind == 2:
            return _unicode(self.random) + self.random.choice(("", "x1"))
        if kind == 3:
            return "".join(self.random.choices(SPECIAL, k=self.random.randint(1, 9)))
        if usual is WORDS and self.random.random() < 0.6:
            return self.random.choice(COMMON)
        return self.random.choice(usual)

    def _phrase_text(self) -> str:
        mark = self.random.choice(("", "", "", EXACT_MARK))
        words = (self._text(WORDS) for _ in range(self.random.choice((1, 2, 2, 3, 4))))
        return mark + " ".join(words)

    def _field(self) -> TextField:
        return self.random.choice(FIELDS)


def _phrase(text: str, slop: int, field: TextField) -> Phrase:
    try:
        return Phrase(text, slop, field)
    except ArgumentError:  # a slop on one word
        return Phrase(text, 0, field)


def _unicode(random: Random) -> str:
    codes = (random.randrange(random.choice((0x80, 0x800, 0x10000, 0x110000))) for _ in range(6))
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)
