"""Rewriting: a text, a passage or a question with invented names and moved years."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import regex

from arag_search.corpus import nfc
from bench.counterfactual.found import (
    ARTICLES,
    FOREIGN,
    Found,
    Token,
    awards_in,
    is_first,
    is_kept,
    not_staying,
    of_a_kind,
    replaceable,
    tokens_of,
    without_brackets,
)
from bench.counterfactual.invented import Invented
from bench.counterfactual.years import MOVED, Years

Kind = Literal["text", "name", "question", "id"]
_NAMES = (
    *("title", "titles", "answer", "answers", "answer_aliases", "aliases", "subject", "object"),
    *("evidence", "evidences", "evidence_relations", "supporting_titles", "supporting_facts"),
    "decomposition_support",
)
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(_NAMES, "name"),
    **dict.fromkeys(("question", "query", "input"), "question"),
    **dict.fromkeys(("id", "_id", "doc_id", "docid"), "id"),
}
_DATED = regex.compile(r"date|year|born|died|birth|death|inception", regex.I)
_HASHED = regex.compile(r"\d\p{L}|\p{L}\d")
_ARROW = ">>"
"""Stands between a name and a relation in steps of MuSiQue."""


class Rewriting:
    """Rewrites the strings of records; the same record gives the same strings."""

    def __init__(self, lexicon: Found, invented: Invented, years: Years) -> None:
        self._found, self._invented, self._years = lexicon, invented, years
        foreign = sum(bool(FOREIGN.search(word)) for word in lexicon.words)
        self._spells = 2 * foreign < len(lexicon.words)

    def record(self, value: object, kind: Kind = "text", own: frozenset[str] = frozenset()) -> Any:
        """Return a JSON value with all of its strings rewritten, each as its field asks. ``own``
        are ordinary words that are part of a name there, and years of three digits."""
        if isinstance(value, str):
            return self._string(nfc(value), kind, own)
        if isinstance(value, list):
            return [self.record(item, kind, own) for item in cast(list[object], value)]
        if not isinstance(value, dict):
            return value
        fields = cast(dict[str, Any], value)
        if "title" in fields or "question" in fields:
            own = frozenset(self._own(fields))
        return {
            name: item + MOVED
            if type(item) is int and 1000 <= item < 2030 and _DATED.search(name)
            else self.record(item, _KINDS.get(name, "text"), own)
            for name, item in fields.items()
        }

    def _own(self, value: object, kind: Kind = "text") -> Iterator[str]:
        """Yield the ordinary words of the names in a record, and the dates of its triples."""
        if isinstance(value, dict):
            for name, item in cast(dict[str, Any], value).items():
                yield from self._own(item, _KINDS.get(name, "text"))
        elif isinstance(value, list):
            items = cast(list[Any], value)
            if len(items) == 3 and _DATED.search(str(items[1])):
                yield str(items[2])
            for item in items:
                yield from self._own(item, kind)
        elif isinstance(value, str) and (kind in ("text", "name") or _ARROW in value):
            tokens = tokens_of(nfc(value))
            keys = {tokens[at].key for at in self._replaced(nfc(value), tokens, kind, frozenset())}
            yield from (key for key in keys if not (of_a_kind(key) or self._found.is_proper(key)))

    def _string(self, text: str, kind: Kind, own: frozenset[str]) -> str:
        is_id = kind == "id"
        if is_id and _HASHED.search(text):
            return text
        spaced = text.replace("_", " ") if is_id else text
        tokens = tokens_of(spaced)
        replaced = self._replaced(spaced, tokens, "question" if is_id else kind, own)
        written = self._written(spaced, tokens, replaced)
        if is_id:
            return written.replace(" ", "_") if "_" in text else written
        return self._years.later(written, is_date=text in own)

    def _replaced(
        self, text: str, tokens: Sequence[Token], kind: Kind, own: frozenset[str]
    ) -> set[int]:
        """Return which words of a text are replaced."""
        lexicon, any_case = self._found, kind == "question"
        replaced: set[int] = set()
        within: set[int] = set()
        for start, end in lexicon.phrases.matches(tokens, any_case=any_case):
            replaced |= {start + at for at in replaceable(tokens[start:end])}
            within.update(range(start, end))
        in_awards = {
            at
            for at, token in enumerate(tokens)
            if any(start <= token.start < end for start, end in awards_in(text))
        }
        within |= in_awards
        within |= set(range(len(tokens))) - set(not_staying([token.key for token in tokens]))
        name = text if kind == "name" or len(tokens) == 1 else text.partition(_ARROW)[0]
        is_whole = kind != "text" and (kind == "name" or name != text or len(tokens) == 1)
        bare = [t for t in tokens_of(without_brackets(name)) if t.key not in ARTICLES]
        for at, token in enumerate(tokens):
            if at in within or not (token.is_capital or any_case):
                continue
            has_capitals = not token.text[1:].islower() and not token.text.isupper()
            if (
                lexicon.is_proper(token.key)
                or (has_capitals and lexicon.can_be_name(token.key))
                or (token.is_capital and token.key in own and not of_a_kind(token.key))
                or (
                    token.key in lexicon.single
                    and not is_kept([token])
                    and (
                        (is_whole and bare == [token])
                        or (any_case and _is_within(text, token))
                        or _is_quoted(text, token)
                    )
                )
            ):
                replaced.add(at)
        self._add_neighbours(text, tokens, replaced, within)
        _add_initials(text, tokens, replaced, in_awards)
        return replaced

    def _add_neighbours(
        self, text: str, tokens: Sequence[Token], replaced: set[int], within: set[int]
    ) -> None:
        """Add ordinary words with capitals that stand beside a name, or beside another of them,
        within a sentence."""
        can = {
            at
            for at, token in enumerate(tokens)
            if at not in within and token.is_capital and self._found.can_be_name(token.key)
            and (at in replaced or not is_first(text, token.start))
        }  # fmt: skip
        for at in range(len(tokens) - 1):
            if text[tokens[at].end : tokens[at + 1].start] in (" ", "-") and {at, at + 1} <= can:
                replaced |= {at, at + 1}

    def _written(self, text: str, tokens: Sequence[Token], replaced: set[int]) -> str:
        parts: list[str] = []
        end = 0
        for at, token in enumerate(tokens):
            is_foreign = self._spells and FOREIGN.search(token.text)
            new = self._new(token) if at in replaced or is_foreign else token.text
            parts += (text[end : token.start], new)
            end = token.end
        return "".join((*parts, text[end:]))

    def _new(self, token: Token) -> str:
        if FOREIGN.search(token.text):
            return self._invented.spelt(token.text)
        if len(token.text) == 1 and token.text.isupper():
            return self._invented.initial(token.text)
        is_acronym = self._found.is_acronym(token.key)
        return self._invented.written(token.text, token.key, is_acronym=is_acronym)


def _is_within(text: str, token: Token) -> bool:
    return token.is_capital and not of_a_kind(token.key) and not is_first(text, token.start)


def _is_quoted(text: str, token: Token) -> bool:
    before = regex.sub(r"(?:\b(?:The|An?)\s+)?\s*$", "", text[: token.start])
    return before[-1:] in tuple('"“') and text[token.end :].lstrip(" ,.!?")[:1] in tuple('"”')


def _add_initials(
    text: str, tokens: Sequence[Token], replaced: set[int], in_awards: set[int]
) -> None:
    """Add single letters with a full stop before a name, or between or after its parts."""
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        if len(token.text) > 1 or not token.text.isupper() or at in in_awards:
            continue
        has_dot = text[token.end : token.end + 1] == "."
        after, before = tokens[at + 1 : at + 2], tokens[max(0, at - 1) : at]
        follows = (
            at + 1 in replaced
            and after[0].is_capital
            and not text[token.end : after[0].start].strip(". -")
        )
        is_last = (
            at - 1 in replaced
            and token.text not in "IVX"
            and text[before[0].end : token.start] in (" ", ". ")
        )
        if (has_dot and follows) or (is_last and (has_dot or follows)):
            replaced.add(at)
