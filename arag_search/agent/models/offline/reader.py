"""The policy: choose the next call, and the answer, from what has been shown so far."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

from arag_search.agent.models.offline import queries
from arag_search.agent.models.offline.answers import (
    CUES,
    best_span,
    date_key,
    ranked_sentences,
    value_of,
)
from arag_search.agent.models.offline.countries import countries_of
from arag_search.agent.models.offline.names import (
    fold,
    people_in,
    unqualified,
    without_land,
    without_rank,
)
from arag_search.agent.models.offline.questions import ParsedQuestion
from arag_search.agent.models.offline.relations import RELATIONS, related
from arag_search.agent.models.offline.replies import Reply, SeenPassage
from arag_search.tools.chunk_read import ChunkRead
from arag_search.tools.logical_search import LogicalSearch

_HITS = 2
_HITS_OF_KIN = 3
_HITS_OF_WORDS = 3
_MAX_OTHERS = 3
"""The maximum number of names that are tried for the other end of a relation."""
_MAX_BRIDGES = 2


_ALIKE = 0.85


SEARCH = "search"
OPEN = "open"
_LINES_ABOVE = 2


@dataclass(frozen=True, slots=True)
class DocumentQueries:
    """The form of the queries that a search for documents takes: ``logical`` ones or words,
    ``several`` or one."""

    logical: bool
    several: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to call."""

    tool: str
    arguments: dict[str, Any]


Names = Generator[Call, Reply, list[str]]
Value = Generator[Call, Reply, "str | None"]
Finding = Generator[Call, Reply, "Thing"]
Walk = Generator[Call, Reply, None]


@dataclass(slots=True)
class Thing:
    """A named thing, and the passage about it, if there is one."""

    name: str
    passage: SeenPassage | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer; empty if there is none. ``sources`` are ids of passages."""

    answer: str
    why: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Value:
    """The value found for a name in the question, and the ids of the passages that led to it."""

    text: str
    sources: tuple[str, ...]


@dataclass(slots=True)
class Reader:
    """A reader that works through one question. ``tools`` are the names of the tools that may be
    called, ``without`` the rules that are left out. ``operators`` says whether queries may hold AND
    and OR, ``demotes`` whether they may hold DEMOTE. ``documents`` says in which form a search for
    documents takes its queries."""

    question: ParsedQuestion
    tools: frozenset[str]
    without: frozenset[str] = frozenset()
    operators: bool = True
    demotes: bool = False
    documents: DocumentQueries | None = None
    seen: dict[str, SeenPassage] = field(default_factory=dict[str, SeenPassage])
    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])
    values: dict[str, _Value] = field(default_factory=dict[str, "_Value"])
    trail: list[str] = field(default_factory=list[str])

    def steps(self) -> Walk:
        """Yield the calls one at a time; the caller sends back the reply to each."""
        asked = self.question
        if asked.form == "open":
            start = asked.names[:1]
            if len(asked.names) > 1 and "words" not in self.without:
                yield from self._by_words()
            elif start and (asked.hops or asked.sought in CUES or asked.sought == "country"):
                yield from self._walk(start[0])
            if not self.values and "words" not in self.without:
                yield from self._by_words()
            return
        names = asked.names[:1] if "both" in self.without else asked.names[:2]
        for name in names:
            yield from self._walk(name)

    # Walking from a name along relations.

    def _walk(self, start: str) -> Walk:
        asked = self.question
        hops = asked.hops if "bridge" not in self.without else asked.hops[:0]
        thing = yield from self._find(start, self._beside(hops, 0))
        way: list[Thing] = []
        for number, hop in enumerate(hops):
            others = yield from self._follow(thing, hop)
            if not others:
                return
            way.append(thing)
            if number == len(hops) - 1 and asked.sought == "person":
                self.trail.append(f"{hop} of {thing.name}: {others[0]}")
                self._note(start, without_rank(unqualified(others[0])), way)
                return
            before = thing
            for other in others[:_MAX_OTHERS]:  # the first that has a passage
                thing = yield from self._find(other, self._beside(hops, number + 1))
                if thing.passage is not None:
                    break
            self.trail.append(f"{hop} of {before.name}: {thing.name}")
        if hops == asked.hops:
            value = yield from self._value(thing)
            if value is not None:
                self.trail.append(f"{asked.sought} of {thing.name}: {value}")
                self._note(start, value, [*way, thing])

    def _beside(self, hops: Sequence[str], at: int) -> tuple[str, ...]:
        """Return the words near which a mention of a name is relevant."""
        if at < len(hops):
            return RELATIONS[hops[at]].words
        return CUES.get(self.question.sought, self.question.words[:6])

    def _note(self, start: str, value: str, way: Sequence[Thing]) -> None:
        sources = tuple(thing.passage.id for thing in way if thing.passage is not None)
        self.values[start] = _Value(value, sources)

    def _find(self, name: str, beside: Sequence[str], top_k: int = _HITS) -> Finding:
        """Find the passage about a name: by title and phrase, then by all of its words, then by any
        of them."""
        name = without_rank(name)
        kin = any(word in ("son", "daughter", "married") for word in beside)
        top_k = _HITS_OF_KIN if kin else top_k
        query = queries.for_name(name, beside, titles="titles" not in self.without)
        reply = yield from self._search(query, top_k)
        if not reply.passages and "widen" not in self.without:
            for every in (True, False):
                shown = set(self.seen)
                query = queries.for_words_of(name, all_of_them=every)
                reply = yield from self._search(query, top_k)
                if any(passage.id not in shown for passage in reply.passages):
                    break
        return Thing(name, _about(name, reply.passages, beside))

    def _follow(self, thing: Thing, hop: str) -> Names:
        """Find names for the other end of a relation, the likeliest first."""
        names = yield from self._stated_names(thing, hop)
        if not names and hop == "mother":
            fathers = yield from self._stated_names(thing, "father")
            if fathers:  # a father's wife
                parent = yield from self._find(fathers[0], RELATIONS["spouse"].words)
                names = yield from self._stated_names(parent, "spouse")
        return names

    def _stated_names(self, thing: Thing, hop: str) -> Names:
        """Return these names in the form in which the passage about the thing states them."""
        passage = thing.passage
        if passage is None:
            return []
        known = (thing.name, passage.title)
        names = related(passage.text, RELATIONS[hop], *known)
        if not names and not passage.whole and "read" not in self.without:
            thing.passage = passage = yield from self._read(passage)
            names = related(passage.text, RELATIONS[hop], *known)
        return names

    def _value(self, thing: Thing) -> Value:
        """Return what the question asks about the thing."""
        asked = self.question
        passage = thing.passage
        if passage is None:
            return None
        words = () if asked.sought == "date" and asked.form == "choice" else asked.words
        value = value_of(asked.sought, passage.text, words)
        if value is None and not passage.whole and "read" not in self.without:
            thing.passage = passage = yield from self._read(passage)
            value = value_of(asked.sought, passage.text, words)
        return value

    # Questions without a relation that is known.

    def _by_words(self) -> Walk:
        """Search by names and content words, then for the name that the passages lead to."""
        asked = self.question
        hops_words = [word for hop in asked.hops for word in RELATIONS[hop].words]
        words = [*asked.words, *hops_words]
        query = queries.for_content(asked.names, words)
        yield from self._search(query, _HITS_OF_WORDS)
        if "widen" not in self.without:
            yield from self._search(queries.for_any(asked.text), _HITS_OF_WORDS)
        if "bridge" in self.without:
            return
        beside = [*CUES.get(asked.sought, ()), *asked.words[:6]]
        for bridge in self._bridges(words)[:_MAX_BRIDGES]:
            thing = yield from self._find(bridge, beside, top_k=1)
            if asked.sought in CUES or asked.sought == "country":
                value = yield from self._value(thing)
                if value is not None:
                    self.trail.append(f"{asked.sought} of {thing.name}: {value}")
                    self._note(asked.text, value, [thing])
                    return

    def _bridges(self, words: Sequence[str]) -> list[str]:
        """Return names that are not in the question, from the sentences with most of its words."""
        known = " | ".join(f" {fold(name)} " for name in self._known)
        shown = [(passage.title, passage.text) for passage in self.seen.values()]
        bridges: dict[str, str] = {}
        for _, _, sentence in ranked_sentences(shown, [*words, *self.question.names])[:3]:
            for name in people_in(sentence):
                if f" {fold(name.text)} " not in known:
                    bridges.setdefault(fold(name.text), name.text)
        return sorted(bridges.values(), key=lambda name: " " not in name)  # full names first

    @property
    def _known(self) -> tuple[str, ...]:
        """The names in the question and its exclusion, none of which can be the answer."""
        asked = self.question
        return (*asked.names, asked.excluded) if asked.excluded else asked.names

    # Calls.

    def _search(self, query: str, top_k: int) -> Generator[Call, Reply, Reply]:
        if not query or not {LogicalSearch.name, SEARCH}.intersection(self.tools):
            return Reply((), 0)
        if self.documents is not None and not self.documents.logical:
            query = queries.words_of(query)
        elif not self.operators:
            query = queries.without_operators(query)
        elif self.demotes and self.question.excluded:
            query = queries.lowering(query, self.question.excluded)
        if query not in self.replies:  # the same search would show the same
            reply = yield self._search_call(query, top_k)
            passages = [self._with_earlier(passage) for passage in reply.passages[:top_k]]
            self.replies[query] = Reply(tuple(passages), reply.total)
        return self.replies[query]

    def _search_call(self, query: str, top_k: int) -> Call:
        """Return a call of the search tool of the preset."""
        if self.documents is None:
            return Call(LogicalSearch.name, {"query": query, "top_k": top_k})
        if self.documents.several:
            return Call(SEARCH, {"queries": [query]})
        return Call(SEARCH, {"query": query})

    def _read(self, passage: SeenPassage) -> Generator[Call, Reply, SeenPassage]:
        is_document = self.documents is not None and OPEN in self.tools
        if ChunkRead.name not in self.tools and not is_document:
            return passage
        if self.seen[passage.id].whole:
            return self.seen[passage.id]
        if is_document:  # a few lines above the best place
            line = max(passage.line - _LINES_ABOVE, 0)
            reply = yield Call(OPEN, {"reference_id": passage.id, "line_number": line})
        else:
            reply = yield Call(ChunkRead.name, {"chunk_ids": [passage.id]})
        for read in reply.passages:
            if read.id == passage.id:
                self.seen[read.id] = whole = self._with_earlier(read)
                return whole
        return passage

    def _with_earlier(self, passage: SeenPassage) -> SeenPassage:
        """Return a passage together with the parts that were shown before, and are therefore not
        repeated."""
        earlier = self.seen.setdefault(passage.id, passage)
        if not passage.text:
            return earlier
        if not passage.continues or earlier is passage:
            return passage
        return replace(passage, text=f"{earlier.text} {passage.text}")

    # The answer.

    def verdict(self) -> Verdict:
        """Return the best answer from what has been noted so far."""
        asked = self.question
        why = "; ".join(self.trail)
        found_in = (source for value in self.values.values() for source in value.sources)
        sources = tuple(dict.fromkeys(found_in))
        if asked.form == "choice":
            return Verdict(self._choose(), why, sources)
        if asked.form == "yes_no":
            return Verdict(self._yes_or_no(), why, sources)
        if self.values:
            return Verdict(next(iter(self.values.values())).text, why, sources)
        if "spans" in self.without or not self.seen:
            return Verdict("")
        shown = list(self.seen.values())
        span = best_span(
            asked.sought,
            [(passage.title, passage.text) for passage in shown],
            asked.words,
            self._known,
        )
        if span is None:
            return Verdict("")
        source = shown[span[1]]
        return Verdict(span[0], f"{source.title or source.id} speaks of it", (source.id,))

    def _choose(self) -> str:
        """Return which of two names is the answer, by comparing their values."""
        asked = self.question
        if len(asked.names) < 2 or any(name not in self.values for name in asked.names[:2]):
            return ""
        first, second = (self.values[name].text for name in asked.names[:2])
        if asked.sought == "lifespan":
            keys = (int(first), 0, 0), (int(second), 0, 0)
        else:
            keys = date_key(first), date_key(second)
        if keys[0] == keys[1] or not asked.order:
            return ""
        return asked.names[0 if (keys[0] < keys[1]) == (asked.order == "least") else 1]

    def _yes_or_no(self) -> str:
        """Return whether two values are the same."""
        asked = self.question
        if len(asked.names) < 2 or any(name not in self.values for name in asked.names[:2]):
            return ""
        first, second = (self.values[name].text for name in asked.names[:2])
        if asked.sought == "country" and "countries" not in self.without:
            return "yes" if countries_of(first) & countries_of(second) else "no"
        return "yes" if fold(first) == fold(second) else "no"


def _about(name: str, passages: Sequence[SeenPassage], beside: Sequence[str]) -> SeenPassage | None:
    """Return the passage whose title is the name; else one whose title contains the name or is
    contained in it; else one that has the name in its first sentence."""
    raw, whole, bare = name.casefold(), fold(name), fold(without_land(unqualified(name)))
    ranked: list[tuple[int, int, int]] = []
    for number, passage in enumerate(passages):
        title, bare_title = fold(passage.title), fold(without_land(unqualified(passage.title)))
        words, wanted = set(bare_title.split()), set(bare.split())
        head = re.split(r" (?:is|was|are|were|may) ", passage.text[:200], maxsplit=1)[0]
        if passage.title.casefold() == raw:
            rank = 0
        elif title == whole:
            rank = 1
        elif bare_title == bare:
            rank = 2
        elif wanted <= words or (len(words) > 1 and words <= wanted):
            rank = 3
        elif f" {bare} " in f" {fold(head)} " or _alike(bare, bare_title):
            rank = 4
        else:
            continue
        fits = sum(bool(re.search(rf"\b{re.escape(word)}", passage.text)) for word in beside)
        ranked.append((rank, -fits, number))
    return passages[min(ranked)[2]] if ranked else None


def _alike(name: str, other: str) -> bool:
    """Return whether two names are spelt nearly alike, like two transcriptions of one name."""
    return SequenceMatcher(None, name, other, autojunk=False).ratio() >= _ALIKE
