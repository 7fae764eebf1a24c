"""Pointers: at the end of a reply, the passages of names that stand in the sentences it shows.

    Named above: [3594.1] André Cayatte: "(3 February 1909, in Carcassonne – 6 February 1989, ..."

So an agent that reads a name need not ask for it. A name is the whole title of a document, or a
link to it, in a sentence that the query asks for. There is no pointer for a part of the passage's
own title, or a name that is too frequent. Nor is there one for a name in the query whose passage is
shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from arag_search.corpus import kind_of, split_at
from arag_search.engines.base import MAX_TOTAL
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause, wanted_leaves
from arag_search.plan.matching import Pattern, Words, patterns_of
from arag_search.query import analysis
from arag_search.query.names import Name, links_in, name_of, possible_names
from arag_search.search.advice.told import ClauseCount
from arag_search.search.index import Index
from arag_search.search.reading.occurrences import Sentences
from arag_search.search.reading.snippets import best_sentence
from arag_search.search.results import SearchResult
from arag_search.tokens import CUT_MARK, count_all, count_tokens, cut_to, with_line
from arag_search.tools.preset import Preset
from arag_search.tools.replies.block import checksum
from arag_search.tools.replies.spans import FURTHER, PassageSpan
from arag_search.tools.replies.writing import one_line, shown_id, shown_title
from arag_search.tools.tool import ReadSet, ToolResult

POINTED = "Named above: "
PASSAGES = 3
"""The number of passages in whose sentences names are looked for."""
MOST_DOCUMENTS = 3
SENTENCE_TOKENS = 64
_PLACE = re.compile(
    r"\b(?:in|at|near) (?:[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*)*(?:,| in) )+$|\([^()]*\d[^()]*\bin $"
)
"""What stands before a place that says where another one is, or where somebody was born."""
_PLACE_CHARACTERS = 100
_LISTED = re.compile(r",?(?: and)? [A-Z]")
_YEAR = re.compile(r"\b\d{3,4}\b")
_ByName = Mapping[str, tuple[list[Hit], int]]


def with_pointers(
    reply: ToolResult, result: SearchResult, index: Index, preset: Preset, read_set: ReadSet
) -> ToolResult:
    """Return a reply with the pointers that the preset asks for, as far as there is room."""
    is_text = preset.explains and not result.asked.form.is_list
    if not (preset.pointers and is_text and index.contents.has_titles):
        return reply
    by_id = {hit.id: hit for hit in (*result.nearest, *result.unrepresented, *result.hits)}
    hits = [by_id[span.id] for span in reply.passages]
    spans = [span for span in reply.passages if span.kind == "hit" and span.text_start < span.end]
    texts = {span.id: span.text_in(reply.text) for span in spans[:PASSAGES]}
    words = {id: analysis.token_columns(text) for id, text in texts.items()}
    common = {
        term
        for id, places in words.items()
        for term, start in zip(places.terms, places.starts, strict=True)
        if texts[id][start].islower()
    }
    query = None if result.highlighter is None else result.highlighter.query
    leaves = [] if query is None else wanted_leaves(query)
    titles = [name_of(hit.title) for hit in hits]
    shown = _apart([title for title, hit in zip(titles, hits, strict=True) if hit.is_named])
    of_query = [name for leaf in leaves if f" {(name := name_of(leaf.typed))} " in shown]
    names: dict[str, list[Name]] = {}
    for id, text in texts.items():
        own = _apart([*of_query, name_of(by_id[id].title)])
        both = [*links_in(text, by_id[id].doc_id), *possible_names(text, words[id], common)]
        names[id] = [name for name in both if name.name and f" {name.name} " not in own]
    asked = {
        name.name: "" if name.surely else texts[id][name.start : name.end]
        for id in names
        for name in names[id]
        if name.name not in titles
    }
    by_name = index.named(asked, filter=result.asked.filter) if asked else {}
    known = {hit.doc_id for hit in hits}
    of_names = _asked(query, result.branches)
    pointers: list[list[Hit]] = []
    for span in spans[: PASSAGES if by_name else 0]:
        known_names = list(_longest(names[span.id], by_name, titles))
        for name, documents in _led_to(known_names, by_id[span.id], span, texts[span.id], of_names):
            if documents and all(
                d.doc_id not in known and not read_set.seen.get(d.id) for d in documents
            ):
                known.update(hit.doc_id for hit in documents)
                if name.surely or not _is_frequent(name.name, by_name, index.contents.passages):
                    pointers.append(documents)
    typed = [leaf.typed for leaf in leaves if leaf.is_text and not leaf.is_name]
    shown = _apart(titles)
    loose = " ".join(words for words in typed if f" {name_of(words)} " not in shown)
    for documents in pointers[: preset.pointers]:
        sentences = _sentences(documents, loose, index.manifest.language)
        reply = _pointed(reply, documents, sentences, preset.max_result_tokens, read_set)
    return reply


def _asked(query: Clause | None, counts: Sequence[ClauseCount]) -> tuple[list[Pattern], bool]:
    """Return the patterns of the names in a query and of its rarest condition, and whether the
    query is only a name. Groups are no candidates for the rarest condition. If there are several
    candidates, it is the one with the smallest count."""
    if query is None:
        return [], False
    leaves, parts = wanted_leaves(query), query.parts or (query,)
    single = [part for part in parts if part.is_text and part.role == "wanted"]
    matches = {count.clause: count.count for count in counts}
    counted = [part for part in single if part.text in matches]
    rarest = single if not single[1:] else sorted(counted, key=lambda part: matches[part.text])[:1]
    names = [leaf for leaf in leaves if leaf.is_name]
    patterns = [pattern for leaf in (*rarest, *names) for pattern in patterns_of(leaf)]
    return patterns, len(names) == len(leaves) or not query.parts


def _led_to(
    names: Sequence[tuple[Name, list[Hit]]],
    hit: Hit,
    span: PassageSpan,
    text: str,
    asked: tuple[Sequence[Pattern], bool],
) -> list[tuple[Name, list[Hit]]]:
    """Return the names to point at in a passage. They stand in its first sentence if the query
    names the passage, or in a sentence that matches the query. If the query is a name alone and the
    first sentence leads nowhere, return the names in other sentences."""
    patterns, is_name = asked
    sentences, end = split_at(hit.content, hit.sentence_ends), 0
    led: dict[bool, list[tuple[Name, list[Hit]]]] = {True: [], False: []}
    for number in span.sentences or ():
        sentence = sentences[number - 1].strip()
        start = text.find(sentence, end)
        end = start + len(sentence) if start >= 0 else end
        for name, documents in names:
            if 0 <= start <= name.start < end:
                meant = _meant(name, documents, sentence, start)
                is_first = hit.is_named and number == 1
                is_led = is_first or any(map(Words(sentence).match, patterns))
                led[bool(meant) and is_led].append((name, meant))
    is_end = is_name and hit.is_named and 1 in (span.sentences or ())
    return led[True] or (led[False] if is_end else [])


def _meant(name: Name, documents: list[Hit], sentence: str, offset: int) -> list[Hit]:
    """Return the documents that a name in a sentence may mean; for a link, all of them. There are
    none for a word that they write in lower case, such as a prime minister, or for a place of
    something else. Documents with other years in the title are left out."""
    start, end = name.start - offset, name.end - offset
    is_noun = documents[0].title.partition(" (")[0].lower() in documents[0].content
    is_place = _PLACE.search(sentence[max(start - _PLACE_CHARACTERS, 0) : start])
    if name.surely or sentence[start].islower():
        return documents
    if is_noun or (is_place and not _LISTED.match(sentence, end)):
        return []
    years = list(map(int, _YEAR.findall(sentence)))
    meant: list[Hit] = []
    for hit in documents:
        first, *last = [*map(int, _YEAR.findall(hit.title.partition(" (")[2]))] or [0]
        if not years or any(first <= year <= max(last, default=year) for year in years):
            meant.append(hit)
    return meant


def _longest(
    names: Sequence[Name], by_name: _ByName, titles: Sequence[str]
) -> Iterator[tuple[Name, list[Hit]]]:
    """Yield the names in a text that stand for documents that were found, in order. If names
    overlap, a link or the longest counts, even one of ``titles`` alone. Names of too many documents
    are out."""
    taken: list[Name] = []
    known = [name for name in names if name.name in by_name or name.name in titles]
    for name in sorted(known, key=lambda name: (not name.surely, name.start - name.end)):
        if not any(other.start <= name.start and name.end <= other.end for other in taken):
            taken.append(name)
    for name in sorted(taken):
        documents, _ = by_name.get(name.name, ([], 0))
        if 0 < len(documents) <= MOST_DOCUMENTS:
            yield name, documents


def _is_frequent(name: str, by_name: _ByName, passages: int) -> bool:
    """Return whether a name stands in too many passages to be one: a word such as "Film", or a
    title such as "United Kingdom"."""
    most = max(10, passages // 100) if " " in name else max(3, passages // 1000)
    return by_name[name][1] > min(most, MAX_TOTAL)


def _apart(titles: Sequence[str]) -> str:
    """Return titles with a blank around each word, on a line each."""
    return "".join(f" {title} \n" for title in titles if title)


def _sentences(documents: Sequence[Hit], words: str, language: str) -> dict[int, str]:
    """Return the sentences to show of the passage of a single document, by their numbers. This is
    the sentence with most of these words. If there is none, it is the first that says more than its
    title, and the next if there is room for both."""
    hit = documents[0]
    sentences = split_at(hit.content, hit.sentence_ends) if len(documents) == 1 else []
    known = set(analysis.terms(hit.title))
    more = [n for n, text in enumerate(sentences) if not known.issuperset(analysis.terms(text))]
    if wanted := " ".join(word for word in analysis.terms(words) if word not in known):
        text = Sentences(hit.content, hit.sentence_ends, kind_of(hit.doc_id))
        best = best_sentence(wanted, text, language)
        if best in more:
            return {best: sentences[best]}
    first = [number for number in more[:2] if number in (more[0], more[0] + 1)]
    has_room = count_all(sentences[number] for number in first) <= SENTENCE_TOKENS
    return {number: sentences[number] for number in (first if has_room else first[:1])}


def _pointed(
    reply: ToolResult,
    documents: Sequence[Hit],
    sentences: Mapping[int, str],
    max_tokens: int,
    read_set: ReadSet,
) -> ToolResult:
    """Return a reply with a line for the documents of a name above its last line, if that says how
    to get more. Without room for it, return the reply as it is."""
    at = reply.text.rfind("\n")
    if at < reply.passages[-1].end or not reply.text.startswith(FURTHER, at + 1):
        at = len(reply.text)
    line = f"\n{POINTED}"
    spans: list[PassageSpan] = []
    retrieved: list[str] = []
    for hit in documents:
        line += "; " if spans else ""
        retrieved.append(shown_title(hit.title))
        start, line = at + len(line), f"{line}[{shown_id(hit.id)}] {retrieved[-1]}"
        end = at + len(line)
        spans.append(PassageSpan(hit.id, hit.title, start, end, end, (), False, kind="pointer"))
    is_cut = False
    if sentences:
        text = _without_title("".join(sentences.values()), documents[0].title)
        shown = cut_to(text, SENTENCE_TOKENS)
        is_cut, start = shown != text, at + len(line) + len(': "')
        line += f': "{shown}"'
        retrieved.append(shown)
        spans[0] = replace(
            spans[0],
            text_start=start,
            end=start + len(shown.removesuffix(CUT_MARK) if is_cut else shown),
            sentences=tuple([number + 1 for number in sentences]),
            whole=not is_cut and len(documents[0].sentence_ends) == len(sentences),
        )
    if reply.tokens + count_tokens(line) > max_tokens:
        return reply
    if sentences and not is_cut:
        read_set.note(documents[0].id, map(checksum, sentences.values()))
    return replace(
        reply,
        text=with_line(reply.text, at, line),
        ids=(*reply.ids, *(hit.id for hit in documents)),
        retrieved_tokens=reply.retrieved_tokens + count_all(retrieved),
        passages=(*reply.passages, *spans),
    )


def _without_title(text: str, title: str) -> str:
    """Return a sentence on one line, without the title at its beginning and with other quotation
    marks than those around it."""
    text, name = one_line(text), one_line(title.partition(" (")[0])
    after = text.removeprefix(name)
    if name and after != text and not after[:1].isalnum():
        text = after.lstrip(" ,")
    return text.replace('"', "'")
