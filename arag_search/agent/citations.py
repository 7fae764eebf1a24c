"""Citations in the text of a model: one grammar for answers, explanations and lists of sources.

Ids are in brackets, one or several, with any separator; in a list of sources they may also be
without brackets. Only ids of passages are citations; other text in brackets is ordinary text. A
word that looks like an id and is where an id would be, but that no passage has, is an invented id.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

MAX_CANDIDATES = 200
"""The maximum number of words of a reply that are looked up; replies name fewer passages."""

_BRACKETS = str.maketrans("【】［］\0", "[][] ")
_GROUP = re.compile(r"\[([^\[\]\n]*)\]")
_SEPARATORS = re.compile(r"[,;|\n]")
_JOINING = frozenset({"and", "or", "&", "+", "-", "–", "—"})
_BULLET = re.compile(r"^[ \t]*(?:[-*•–]|\d+[.)])[ \t]+(?=\S)", re.MULTILINE)
_ASIDE = re.compile(r"(?<=[^\s,;|])[ \t]*\([^()\n]*\)")
_ID = re.compile(r"(?=.*\d)\w[\w./:#@+-]*")
_NUMBERED_PART = re.compile(r"(?=.*[^\W\d])\w[\w./:#@+-]*\.\d+")
_AROUND = "\"'`*•()<>.:!?_“”‘’«»"
_AFTER_CITATION = re.compile(r"\s*(?:$|[\[.,;:!?)\]*_\"”]|(?:and|or|&)\b)", re.IGNORECASE)


class Mention(NamedTuple):
    """An id that a text names as a source; ``is_known`` if a passage has it."""

    start: int
    id: str
    is_known: bool


class _Group(NamedTuple):
    """Brackets in a text, and the ids in them. Brackets without an id are ordinary text."""

    start: int
    end: int
    mentions: tuple[Mention, ...]


class _Token(NamedTuple):
    start: int
    text: str
    is_known: bool

    @property
    def is_like_id(self) -> bool:
        return self.is_known or _ID.fullmatch(self.text) is not None


class CitedText:
    """A text in which the ids of ``known`` passages are recognised.

    In a list of sources (``is_list``), any single word in brackets is taken as an id, and ids
    need no brackets. Elsewhere, an id that looks like an ordinary word, such as a number, counts
    only where a citation can be: before a punctuation mark, another citation, "and", or the end.
    """

    def __init__(self, text: str, known: Collection[str], *, is_list: bool = False) -> None:
        self._original = text
        self._text = text.translate(_BRACKETS)
        if is_list:
            self._text = _BULLET.sub(_blank, self._text)
        self._is_list = is_list
        self._ids = frozenset(known)
        self._plain_known = any(id.isalnum() for id in known)
        self._numeric_known = any(not _has_letter(id) for id in known)
        self._known = dict[int, str]()
        self._masked = self._mask(known)
        self._groups = [self._group(brackets) for brackets in _GROUP.finditer(self._masked)]

    def mentions(self) -> list[Mention]:
        """Return the ids that the text names, in the order of the text."""
        mentions = [mention for group in self._groups for mention in group.mentions]
        if self._is_list:
            mentions += self._ids_outside_brackets()
        return sorted(set(mentions))

    def without_citations(self) -> str:
        """Return the text without the brackets around ids."""
        kept, end = "", 0
        for group in self._groups:
            if group.mentions:
                kept += self._original[end : group.start]
                end = group.end
        return kept + self._original[end:]

    def candidates(self) -> Iterator[str]:
        """Yield words that may be the id of a passage that is not known yet."""
        for brackets in _GROUP.finditer(self._masked):
            yield self._text[brackets.start(1) : brackets.end(1)].strip()
            for piece in self._pieces(brackets.start(1), brackets.end(1)):
                yield from (token.text for token in piece if not token.is_known)
        if self._is_list:
            for start, end in _split(self._masked, 0, len(self._masked)):
                yield self._text[start:end].strip().strip(_AROUND)
                yield from (token.text for token in self._tokens(start, end) if not token.is_known)

    def _mask(self, known: Collection[str]) -> str:
        """Return the text with the known ids blanked out, longest first, and note their offsets."""
        masked = self._text
        there = (id for id in known if id in masked and any(map(str.isalnum, id)))
        for id in sorted(there, key=len, reverse=True):

            def blot(match: re.Match[str], id: str = id) -> str:
                self._known[match.start()] = id
                return "\0" * len(id)

            masked = re.sub(rf"(?<![\w./-]){re.escape(id)}(?![\w/-]|\.\w)", blot, masked)
        return masked

    def _pieces(self, start: int, end: int) -> list[list[_Token]]:
        """Return the words between separators."""
        pieces = (self._tokens(*piece) for piece in _split(self._masked, start, end))
        return [piece for piece in pieces if piece]

    def _tokens(self, start: int, end: int) -> list[_Token]:
        tokens: list[_Token] = []
        for word in re.finditer(r"\S+", self._masked[start:end]):
            tokens += self._tokens_of(start + word.start(), word[0])
        return [token for token in tokens if token.text.lower() not in _JOINING]

    def _tokens_of(self, start: int, word: str) -> Iterator[_Token]:
        """Yield the known ids in a word, or else the word itself; slashes may separate ids."""
        places = [at for at in range(start, start + len(word)) if at in self._known]
        if places:
            yield from (_Token(at, self._known[at], True) for at in places)
            return
        parts = word.strip(_AROUND).split("/")
        if len(parts) > 1 and self._ids.issuperset(parts):
            yield from (_Token(start + at, part, True) for at, part in enumerate(parts))
        elif bare := word.strip(_AROUND):
            yield _Token(start, bare, False)

    def _group(self, brackets: re.Match[str]) -> _Group:
        pieces = self._pieces(brackets.start(1), brackets.end(1))
        has_ids = [all(token.is_like_id for token in piece) for piece in pieces]
        is_word = self._is_list and len(pieces) == len(pieces[0]) == 1 if pieces else False
        named = [
            Mention(token.start, token.text, token.is_known)
            for piece, good in zip(pieces, has_ids, strict=True)
            for token in piece
            if (good and (token.is_known or all(has_ids))) or is_word
        ]
        if not self._is_list:
            can_cite = _AFTER_CITATION.match(self._masked, brackets.end()) is not None
            named = [mention for mention in named if self._is_cited_in_text(mention, can_cite)]
        named = [mention for mention in named if any(map(str.isalnum, mention.id))]
        return _Group(brackets.start(), brackets.end(), tuple(named))

    def _is_cited_in_text(self, mention: Mention, can_cite: bool) -> bool:
        """Return whether an id in brackets within a sentence is a citation rather than a word of
        it."""
        id = mention.id
        if mention.is_known:
            return can_cite or not id.isalnum()
        if id.isalnum():
            return can_cite and self._plain_known
        return _has_letter(id) or (can_cite and self._numeric_known)

    def _ids_outside_brackets(self) -> Iterator[Mention]:
        """Yield the ids in a list that are outside brackets."""
        rest = list(self._masked)
        for group in self._groups:
            rest[group.start : group.end] = " " * (group.end - group.start)
        outside = _ASIDE.sub(_blank, "".join(rest))
        bracketed = {at for group in self._groups for at in range(group.start, group.end)}
        for at, id in self._known.items():
            if at not in bracketed and not id.isalnum():
                yield Mention(at, id, True)
        begins = [group.start for group in self._groups]
        for start, end in _split(outside, 0, len(outside)):
            at = bisect_left(begins, start)
            is_beside = at < len(begins) and begins[at] < end
            yield from self._ids_in_piece(outside[start:end], start, is_beside)

    def _ids_in_piece(self, piece: str, start: int, is_beside: bool) -> Iterator[Mention]:
        """Yield the ids in a piece of a list: all of its words if all look like ids, otherwise
        the first word if a colon or a dash sets it apart. ``is_beside`` is for words next to ids in
        brackets."""
        words = [
            (start + match.start(), match[0])
            for match in re.finditer(r"\S+", piece)
            if match[0].lower() not in _JOINING
        ]
        tokens = [token for at, word in words for token in self._tokens_of(at, word)]
        if not is_beside and all(token.is_like_id for token in tokens):
            yield from (Mention(*token) for token in tokens)
            return
        first_word = words[0][1] if words else ""
        dashes = re.match(r"\s*\S+\s+[-–—]\s", piece) is not None
        for token in tokens:
            is_named = token == tokens[0] and (first_word.endswith(":") or dashes)
            if token.is_known:
                if is_named and not is_beside:
                    yield Mention(*token)
            elif (token == tokens[0] or is_beside) and _NUMBERED_PART.fullmatch(token.text):
                yield Mention(*token)


def candidates(texts: Iterable[CitedText], known: Collection[str]) -> list[str]:
    """Return the words of these texts that could be unknown ids, at most MAX_CANDIDATES."""
    ids: dict[str, None] = {}
    for text in texts:
        for id in text.candidates():
            if len(ids) == MAX_CANDIDATES:
                break
            if id not in known and any(map(str.isalnum, id)):
                ids[id] = None
    return list(ids)


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places between separators."""
    for separator in _SEPARATORS.finditer(text, start, end):
        yield start, separator.start()
        start = separator.end()
    yield start, end


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _has_letter(id: str) -> bool:
    return any(map(str.isalpha, id))
