"""The normal forms of words, which an index searches unless a word is asked for as it is written.

Only ``normal_forms`` makes them, for the build, the parser, snippets, marks, counts and the oracle
of the tests. Engines index and search what it returns. Its steps, which ``steps`` and manifests
name:

1. Words are found as StandardAnalyzer finds them in the text as it is (see ``analysis``), but for
   three things. Any sign of ``typography`` is an apostrophe between letters. Digits above a short
   word, as in ``m²``, or below a letter belong to it. In scripts without blanks, each character
   with its marks is a word, as of katakana; Hangul is apart from letters and digits beside it.
2. ``C++``, ``C#`` and ``F#`` keep their signs. ``--flag``, ``-j``, ``$HOME``, ``@decorator`` and
   ``.NET`` are their word in its place, and themselves as well. Capitals with dots (``U.S.``) are
   their letters, unless a word of the language has that form (``it``).
3. Letters of another width, ligatures and other compatibility forms become plain letters, and
   digits of any script ASCII digits. These go: apostrophes, a possessive 's, soft hyphens, joiners
   and elided articles. In Arabic and Hebrew, points go, the hamza on an alif, and the difference of
   Persian kaf and yeh. Traditional and simplified Han characters have one form.
4. A word of the dictionary of the language (simplemma) becomes its lemma. A lemma that is a form of
   another one, such as a participle, becomes that one (see ``lemmas``). A word that the dictionary
   does not know is looked up as if typed without accents (``ksiazki``, ``waerme``), and without an
   ending. Otherwise it loses a regular ending. In a Finnish compound, the last part is looked up.
   All this depends on the word in lower case alone. A Korean word, in any language, loses its
   particles.
5. Accents of Latin and Greek letters, and final forms go.
6. An identifier (``pg_stat_statements.max``, ``getUserById``) is itself in its place. Its parts
   stand behind all words, as do the dotted names within it (``a.b`` and ``b.c`` in ``a.b.c``). No
   phrase reaches over them. A compound without its hyphen stands there, too, if that
   is U+2010, which may come from the end of a line. A dotted name that StandardAnalyzer cuts
   (``object.__len__``, ``sqlite3.Row``) is an identifier, too.

Before all this, marks of markup go, by the kind of the document (see ``markup``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib.metadata import version
from itertools import chain, combinations, product, takewhile, zip_longest
from math import prod
from operator import itemgetter
from typing import NamedTuple

from arag_search.corpus import Chunk, TextKind, headings_of, kind_of
from arag_search.query import analysis
from arag_search.query.analysis import Spellings, Token
from arag_search.query.lemmas import LAST_PART, NONE, Lemmas, without_particles
from arag_search.query.limits import MAX_SLOP
from arag_search.query.markup import has_marks, pieces, split, unmarked
from arag_search.query.typography import accents_off, has_only_letters, plain_letters

HOLE = ""
"""Stands at the positions before each group of parts."""

HOLE_COUNT = MAX_SLOP + 2
"""The number of holes: no loose phrase reaches over them."""

_MAX_KNOWN = 200_000
_MAX_PIECE = 60
_MAX_DOTTED = 5
_MAX_SPELLINGS = 12


class NormalForm(NamedTuple):
    """A normal form, and the offsets in code points of the word that it stands for."""

    term: str
    start: int
    end: int


@cache
def steps(language: str) -> tuple[str, ...]:
    """Return the names of the steps, with the version of the dictionary. An index that was built
    with other steps cannot be searched."""
    before = ("words", "signs", "unspaced", "scripts", "symbols", "letters", "points", "particles")
    after = (
        "accents",
        "identifiers",
        "names within",
        "cut names",
        "texts beside",
        "initials",
        "marks",
        "Han",
    )
    if language == NONE:
        return (*before, *after)
    lemmas = f"lemmas of {language} (simplemma {version('simplemma')})"
    parts = ("last parts",) if language in LAST_PART else ()
    return (*before, lemmas, "typed plain", "endings", *parts, *after)


def normal_forms(text: str, language: str, *, kind: TextKind = "") -> list[NormalForm]:
    """Return the normal form of each word of a text, in order. Then come, for each symbol and
    identifier, HOLE_COUNT holes and its other forms. In code, two capitalised parts are an
    identifier, too. The marks of another ``kind`` are left out (see ``markup``).

    O(len(text)). The first call for a language on a machine takes seconds (see ``dictionaries``).
    """
    if not (_UNUSUAL.search(text) or _CUT_HYPHEN in text or has_marks(text, kind)):
        known = _known(language)
        return [NormalForm(known[term], start, end) for term, start, end in _words(text)]
    forms: list[NormalForm] = []
    groups: list[list[NormalForm]] = []
    for piece in pieces(text, kind):
        _, its_forms, its_groups = _read_piece(piece[0], language, kind)
        forms += _moved(its_forms, piece.start())
        groups += [_moved(group, piece.start()) for group in its_groups]
    for group in groups:
        forms += [NormalForm(HOLE, group[0].start, group[0].start)] * HOLE_COUNT
        forms += group
    return forms


def _moved(forms: list[NormalForm], offset: int) -> list[NormalForm]:
    return [NormalForm(term, offset + start, offset + end) for term, start, end in forms]


def _read_piece(
    piece: str, language: str, kind: TextKind
) -> tuple[list[Token], list[NormalForm], list[list[NormalForm]]]:
    """Read a text without white space, over which no word, symbol or identifier reaches.

    Return its words as they are written, their forms, and the groups of forms behind them.
    """
    if has_marks(piece, kind) and (plain := unmarked(piece, kind)):
        _, forms, groups = _read_piece(plain.text, language, "")
        forms, *groups = [
            [NormalForm(*form) for form in plain.placed(own)] for own in (forms, *groups)
        ]
        return analysis.tokens(piece), forms, groups
    known = _known(language)
    tokens = words = analysis.tokens(piece)
    if (not piece.isascii() or "`" in piece) and _MARKED.search(piece):
        piece = _plain_signs(piece)
        words = _words(piece)
    if not _UNUSUAL.search(piece) and _CUT_HYPHEN not in piece:  # most
        return tokens, [NormalForm(known[term], start, end) for term, start, end in words], []
    forms: list[NormalForm] = []
    groups: list[list[NormalForm]] = []
    cut = _cut_names(piece)
    name_end = 0
    for term, start, end in words:
        if sign := _SIGNS.match(piece, end) if _is_language(term, piece, start) else None:
            forms.append(NormalForm(term + sign[0], start, sign.end()))
            continue
        word = cut.get(start, piece[start:end])
        is_short = "." in term and word.isupper() and _LETTERS.fullmatch(term)
        form = known.of_letters(term) if is_short else known[term]
        forms.append(NormalForm(form, start, end))
        if start < name_end or (word.islower() and not ("." in word or "_" in word)):  # most words
            continue
        name_end = start + len(word)
        parts = parts_of(word)
        if parts and (kind == "code" or not _is_name(word)):
            groups.append([NormalForm(known[part], start, name_end) for part in parts])
            groups += [
                [NormalForm(known[inner], start, name_end) for inner in analysis.terms(name)]
                for name in _within(word)
            ]
    groups += [[NormalForm(match[0].lower(), *match.span())] for match in _SYMBOL.finditer(piece)]
    for word in _CUT_COMPOUND.finditer(piece) if _CUT_HYPHEN in piece else ():
        groups.append([NormalForm(known[word[0].replace(_CUT_HYPHEN, "").lower()], *word.span())])
    return tokens, forms, groups


def normal_terms(text: str, language: str, *, kind: TextKind = "") -> list[str]:
    """Return only the terms of ``normal_forms``, in less time."""
    terms = " ".join(map(_pieces(language, kind, False).__getitem__, split(text, kind)))
    if "\n" not in terms:  # most
        return terms.split()
    words, *groups = indexed(text, language, kind=kind).split("\n")
    return joined_apart([words.split(), *map(str.split, groups)])


def joined_apart(groups: Sequence[Sequence[str]]) -> list[str]:
    """Return the terms of groups with HOLE_COUNT holes between two of them."""
    terms = list(groups[0])
    for group in groups[1:]:
        terms += [HOLE] * HOLE_COUNT
        terms += group
    return terms


def indexed(text: str, language: str, *, kind: TextKind = "", written: bool = False) -> str:
    """Return the terms of a text as engines read them: with blanks between them, and a line feed
    for holes. If ``written``, see ``forms_of_chunk``."""
    return _joined(list(map(_pieces(language, kind, written).__getitem__, split(text, kind))))


def _joined(pieces: list[str]) -> str:
    """Return the terms of pieces that follow each other, with the groups of all behind them."""
    terms = " ".join(filter(None, pieces))
    if "\n" not in terms:
        return terms
    parts = [piece.split("\n") for piece in pieces]
    words = " ".join([piece[0] for piece in parts if piece[0]])
    return "\n".join([words, *(group for piece in parts for group in piece[1:])])


class _Pieces(dict[str, str]):
    """The results of ``indexed`` for pieces between white space, of which a number is kept. Most of
    a text has been read before."""

    def __init__(self, language: str, kind: TextKind, written: bool) -> None:
        super().__init__()
        self._language, self._written = language, written
        self._kind: TextKind = kind

    def __missing__(self, piece: str) -> str:
        read = self._read(piece)
        if len(piece) <= _MAX_PIECE:  # Chinese and others have no blanks
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[piece] = read
        return read

    def _read(self, piece: str) -> str:
        if plain := _PLAIN_PIECE.fullmatch(piece):  # most
            word = plain[1].lower()
            form = _known(self._language)[word] if self._language else word
            return f"{word}\t{form}" if self._written and form != word else form
        if not self._language:
            return " ".join(analysis.terms(piece))
        tokens, forms, groups = _read_piece(piece, self._language, self._kind)
        terms = [form.term for form in forms]
        if self._written:
            written = [token.term for token in tokens]
            pairs = zip_longest(written, terms, fillvalue="")
            terms = [form if form == word else f"{word}\t{form}" for word, form in pairs]
        return "\n".join(
            [" ".join(terms), *(" ".join([form.term for form in group]) for group in groups)]
        )


_pieces = cache(_Pieces)


class ChunkForms(NamedTuple):
    """The normal forms of a chunk as engines read them.

    ``title``, ``sentences``: the forms of the title, and of each sentence.
    ``own_content``: the forms of the content; None if the sentences have the same.
    ``sentence_titles``: the forms of the title of each sentence; empty if the chunk has no units
        and no texts beside it.
    """

    title: str
    sentences: list[str]
    own_content: str | None
    sentence_titles: list[str]

    @property
    def content(self) -> str:
        """The forms of the content."""
        return _joined(self.sentences) if self.own_content is None else self.own_content


def forms_of_chunk(chunk: Chunk, language: str, *, written: bool = False) -> ChunkForms:
    """Return the normal forms of a chunk. Its content has the forms of its sentences, unless a word
    goes on in the next one.

    If ``written``, a form stands behind the word as StandardAnalyzer finds it, with a tab between,
    unless they are the same. A word may have no form, and a form no word. For the language "",
    there are only words as written.
    """
    texts = chunk.sentences()
    kind = kind_of(chunk.doc_id)
    read = partial(indexed, language=language, kind=kind, written=written)
    title, *sentences = map(read, (chunk.title, *texts))
    titles: list[str] = []
    if language and len(heading := chunk.heading) > 1:
        parts = {text: read(text) for text in heading}

        def joined(heading: Sequence[str]) -> str:
            first, *others = map(parts.__getitem__, heading)
            return "\n".join([first, *filter(None, others)])

        title = joined(heading)
        if chunk.outline.units or chunk.outline.beside:
            headings = headings_of(chunk.title, chunk.outline, len(texts))
            made = {heading: joined(heading) for heading in dict.fromkeys(headings)}
            titles = [made[heading] for heading in headings]
    is_apart = all(text[-1:].isspace() for text in texts[:-1])
    return ChunkForms(title, sentences, None if is_apart else read(chunk.content), titles)


@lru_cache(1 << 12)
def normal_spellings(text: str, language: str) -> Spellings:
    """Return the terms that a word or phrase of a query stands for, in each of its spellings; none
    if it holds nothing to search.

    A word that is typed without accents, and is no lemma itself, also stands for the words that are
    typed like it. A symbol is only itself. An identifier is itself, its parts in order or, if it is
    dotted, one of its dotted endings of two parts to _MAX_DOTTED. Initials are joined, with dots,
    or in capitals also apart.
    """
    known = _known(language)
    if text.isascii() and text.isalpha() and text[1:].islower():  # most words
        return tuple((term,) for term in known.readings(text.lower()))
    if not (_MAY_BE_INITIALS.search(text) and _INITIALS.search(text)):
        return _spellings(text, language)
    choices: list[Iterable[tuple[str, ...]]] = []
    end = 0
    for short in _INITIALS.finditer(text):
        choices.append(_spellings(text[end : short.start()], language) or ((),))
        end = short.end()
        letters = tuple([letter for letter in short[0].lower() if letter.isalpha()])
        dotted, own = ".".join(letters), _spellings(short[0], language)
        if short[0].isupper():
            own = (*own[:1], (dotted,), letters)
        own = (*own, (known.of_letters(dotted),))
        if short[0] != text:  # in a phrase, what a text has without dots may be a word (US)
            own = (*own, (known["".join(letters)],))
        choices.append(dict.fromkeys(own))
    choices.append(_spellings(text[end:], language) or ((),))
    return _in_order([tuple(choice) for choice in choices])


def _in_order(choices: Sequence[Spellings]) -> Spellings:
    """Return each way to choose among spellings of parts of a text; the first, if too many."""
    if prod(map(len, choices)) > _MAX_SPELLINGS:
        choices = [spellings[:1] for spellings in choices]
    return tuple(tuple(chain(*chosen)) for chosen in product(*choices))


def _spellings(text: str, language: str) -> Spellings:
    """Return the spellings of a text without initials."""
    known = _known(language)
    if not _UNUSUAL.search(text):
        readings = [known.readings(word) for word, _, _ in _words(text)]
        if len(readings) > 1 or (readings and readings[0][1:]):  # most phrases
            return _in_order([tuple((term,) for term in terms) for terms in readings])
    if _SYMBOL.fullmatch(text.strip()):
        return ((text.strip().lower(),),)
    forms = normal_forms(text, language)
    words = tuple(form.term for form in takewhile(lambda form: form.term != HOLE, forms))
    if not words:
        return ()
    word = text[forms[0].start : forms[len(words) - 1].end]
    if len(words) > 1 and not _DOTTED.fullmatch(word):
        return (words,)
    parts = tuple(known[part] for part in parts_of(word))
    others = [parts] if len(parts) > 1 else []
    pieces = word.split(".")
    least = max(1, len(pieces) - _MAX_DOTTED)
    endings = [".".join(pieces[at:]) for at in range(least, len(pieces) - 1)]
    others += [tuple(known[term] for term in analysis.terms(ending)) for ending in endings]
    return tuple(dict.fromkeys([words, *others]))


@lru_cache(1 << 16)
def folded(word: str) -> str:
    """Return a word or its beginning in normal form, but for its lemma."""
    return _QUOTES.sub("", accents_off(plain_letters(analysis.fold(word)))) or word


# Words and their typographic signs


_APART = "`´′‛"
"""The apostrophes at which StandardAnalyzer cuts a word."""
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"
_NUMERO = "№"
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
    "\U00011700-\U0001173f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f"
)
"""The blocks of Thai, Lao, Burmese, Khmer and scripts like these, and katakana."""
_MARKED = re.compile(
    rf"[{_APART}{_RAISED}{_LOWERED}{_NUMERO}{_UNSPACED}가-힣]"
    rf"(?:(?<![{_APART}가-힣])|(?<=[^\W\d_][{_APART}])(?=[^\W\d_])"
    r"|(?<=[가-힣])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9][가-힣]))"
)
"""A text without any of these is read as the analyser does."""
_SIGN = re.compile(
    rf"(?<=[^\W\d_])[{_APART}](?=[^\W\d_])|(?<=[^\W\d_])[{_LOWERED}]+"
    rf"|(?<![^\W\d_])(?:(?![{_RAISED}{_LOWERED}])[^\W\d_]){{1,3}}[{_RAISED}]+"
)
"""Signs in words. A sign that is raised behind a longer word is the mark of a note."""
_SIGN_TABLE = str.maketrans(_APART + _RAISED + _LOWERED, "'" * len(_APART) + "0123456789" * 2)


def _plain_signs(text: str) -> str:
    """Return a text with plain apostrophes and digits in its words; its length stays."""
    return _SIGN.sub(lambda sign: sign[0].translate(_SIGN_TABLE), text)


def _words(text: str) -> list[Token]:
    if (text.isascii() and "`" not in text) or not _MARKED.search(text):
        return analysis.tokens(text)
    words: list[Token] = []
    for token in analysis.tokens(_plain_signs(text)):
        is_noun = token.term.isascii() or without_particles(token.term).isascii()  # API를
        spans = () if is_noun else analysis.units(token.term)
        words += [
            Token(token.term[start:end], token.start + start, token.start + end)
            for start, end in spans or ((0, token.end - token.start),)
        ]
    words += [Token("no", at, at + 1) for at, sign in enumerate(text) if sign == _NUMERO]
    return sorted(words, key=itemgetter(1))


# Symbols and identifiers


_UNUSUAL = re.compile(
    r"[A-Z_@$#+.-](?:(?<=[_@$#])"
    r"|(?<=[a-z][A-Z])|(?<=[A-Z][A-Z])(?=[a-z])|(?<=\+)(?=\+)"
    r"|(?<=\w\.)(?=\w)|(?<=[-.])(?=[-\w])(?<![^\s(\[{\"'`|,=][-.]))"
)
"""A text without any of these has neither symbols nor identifiers. It begins with a set of rare
characters, so that texts are searched fast."""
_PLAIN_PIECE = re.compile(r"[(\"'\[]?([A-Za-z0-9][a-z0-9]{0,99})[]).,;:!?\"']*")
"""One word between signs, and no identifier."""
_CUT_HYPHEN = "\u2010"
_CUT_COMPOUND = re.compile(r"[^\W\d_]+(?:\u2010[^\W\d_]+)+")
"""A word with hyphens that may come from the ends of lines."""
_SIGNS = re.compile(r"\+\+(?!\+)|#(?!#)")
_SYMBOL = re.compile(
    r"(?<![^\s(\[{\"'`|,=])"
    r"(?:--[A-Za-z][\w-]*\w|-[A-Za-z](?![\w-])|\.NET\b|@[A-Za-z_][\w.]*\w|\$[A-Za-z_]\w*)",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_MAY_BE_INITIALS = re.compile(r"[.A-Z](?:(?<=\w\.)|(?<=[A-Z][A-Z]))")
_INITIALS = re.compile(
    r"(?<![\w.@$-])(?:(?:[^\W\d_]\. ?)+[^\W\d_](?![\w(])\.?(?!\w)|[A-Z]{2,3}(?= +[A-Z][a-z]))"
)
"""Letters with dots (``U.S.``, ``J. K.``), or capitals that may be such before a name."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z\W\d_]+")
_DOTTED = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_CUT = re.compile(r"\.(?:(?<=[\d_]\.)(?=[^\W\d])|(?<=\w\.)(?=_))")
"""The places where StandardAnalyzer cuts a dotted name: behind a digit or beside an underscore."""


def _is_language(term: str, text: str, start: int) -> bool:
    """Return whether a word is the name of a language that may end in signs: C, F or J."""
    return term in ("c", "f", "j") and (not start or not text[start - 1].isalnum())


def parts_of(word: str) -> list[str]:
    """Return the parts of an identifier in lower case; none for another word. Parts of one
    character or of digits alone are left out."""
    is_joined = "_" in word or ("." in word and not word.replace(".", "").isdigit())
    is_mixed = word != word.lower() and not word.isupper() and not word.istitle()
    if not (is_joined or is_mixed):
        return []
    parts = [part.lower() for part in _PART.findall(word) if len(part) > 1]
    return parts if len(parts) > 1 or is_joined or word[0].islower() else []


def _cut_names(text: str) -> Mapping[int, str]:
    """Return the dotted names that StandardAnalyzer cuts, such as ``object.__len__`` and
    ``sqlite3.Row``, by their offset."""
    names = _DOTTED.finditer(text) if _CUT.search(text) else ()
    return {name.start(): name[0] for name in names if _CUT.search(name[0])}


def _within(word: str) -> Iterator[str]:
    """Yield the dotted names of two parts or more within one of at most _MAX_DOTTED."""
    pieces = word.lower().split(".")
    if len(pieces) <= _MAX_DOTTED:
        for at, end in combinations(range(len(pieces) + 1), 2):
            if 2 <= end - at < len(pieces):
                yield ".".join(pieces[at:end])


def _is_name(word: str) -> bool:
    """Return whether a word may be a name: of two capitalised parts, such as MacDonald."""
    return word[0].isupper() and word.isalpha() and len(_PART.findall(word)) < 3


# Words in lower case


class _Known(dict[str, str]):
    """The normal forms of words in lower case. They are kept, up to a number."""

    def __init__(self, language: str) -> None:
        super().__init__()
        lemmas = None if language == NONE else Lemmas(language)
        self._lemma: Callable[[str], str] = lemmas or str
        self._typed: Callable[[str], Iterable[str]] = lemmas.of_typed if lemmas else lambda _: ()
        self._is_word: Callable[[str], bool] = lemmas.has_word if lemmas else bool

    def __missing__(self, word: str) -> str:
        form = _POSSESSIVE.sub("", plain_letters(word))
        if "가" <= form[-1:] <= "힣":
            form = without_particles(form)
        form = accents_off(self._lemma(form) if has_only_letters(form) else form)
        form = _cut(_QUOTES.sub("", form)) or word
        if len(self) >= _MAX_KNOWN:
            self.clear()
        self[word] = form
        return form

    def of_letters(self, letters: str) -> str:
        """Return the form of capitals with dots: the letters, unless that is the form of a word,
        such as ``it``."""
        joined = letters.replace(".", "")
        return letters if self[joined] == joined and self._is_word(joined) else joined

    def readings(self, word: str) -> tuple[str, ...]:
        """Return the forms of a word of a query. First comes the form of the same word in a text,
        then the forms of words that are typed like it."""
        if word.isalpha() and self[word] != word:
            return tuple(dict.fromkeys((self[word], *map(accents_off, self._typed(word)))))
        return (self[word],)


@cache
def _known(language: str) -> _Known:
    return _Known(language)


_QUOTES = re.compile("['\"]")
_POSSESSIVE = re.compile("(?<=\\w)'s$")


def _cut(term: str) -> str:
    """Return the beginning of a term that an index can hold."""
    if len(term) <= analysis.MAX_UNITS // 2:
        return term
    return term.encode("utf-16-le")[: 2 * analysis.MAX_UNITS].decode("utf-16-le", "ignore")
