"""Pointers: at the end of a reply, the passages of names that stand in the sentences it shows.

    Named above: [3594.1] André Cayatte: "(3 February 1909, in Carcassonne – 6 February 1989, ..."

So an agent that reads a name need not ask for it. A name is the whole title of a document, or a
link to it. There is no pointer for a part of the passage's own title, or of a name in the query
whose passage is shown, nor for a name that is too frequent to be one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from arag_search.corpus import split_at
from arag_search.engines.base import MAX_TOTAL
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import wanted_leaves
from arag_search.query import analysis
from arag_search.query.fields import TITLE
from arag_search.query.forms import is_code
from arag_search.query.names import Name, links_in, name_of, possible_names
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
    titles_of = {hit.id: name_of(hit.title) for hit in hits}
    titles = [titles_of[hit.id] for hit in hits]
    of_query = [name for name, hit in zip(titles, hits, strict=True) if hit.is_named]
    names: dict[str, list[Name]] = {}
    for id, text in texts.items():
        own = _apart([*of_query, titles_of[id]])
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
    pointers: list[list[Hit]] = []
    for id in names:
        for name, documents in _longest(names[id], by_name, titles):
            if all(d.doc_id not in known and not read_set.seen.get(d.id) for d in documents):
                known.update(hit.doc_id for hit in documents)
                if name.surely or not _is_frequent(name.name, by_name, index.contents.passages):
                    pointers.append(documents)
    query = None if result.highlighter is None else result.highlighter.query
    leaves = [] if query is None or not pointers else wanted_leaves(query)
    typed = [leaf.typed for leaf in leaves if leaf.is_text and leaf.field != TITLE]
    shown = _apart(titles)
    loose = " ".join(words for words in typed if f" {name_of(words)} " not in shown)
    for documents in pointers[: preset.pointers]:
        sentence = _sentence(documents, loose, index.manifest.language)
        reply = _pointed(reply, documents, sentence, preset.max_result_tokens, read_set)
    return reply


def _longest(
    names: Sequence[Name], by_name: _ByName, titles: Sequence[str]
) -> Iterator[tuple[Name, list[Hit]]]:
    """Yield the names in a text of documents that were found, in order, if not too many documents
    have them: links, and of names that overlap the longest, which may be one of the ``titles``."""
    taken: list[Name] = []
    known = [name for name in names if name.name in by_name or name.name in titles]
    for name in sorted(known, key=lambda name: (not name.surely, name.start - name.end)):
        if all(name.end <= other.start or other.end <= name.start for other in taken):
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


def _sentence(documents: Sequence[Hit], words: str, language: str) -> tuple[int, str] | None:
    """Return the number and the text of the sentence with most of these words in the passage of a
    single document, or of the first that says more than its title; None if there is none."""
    hit = documents[0]
    if len(documents) > 1:
        return None
    sentences = split_at(hit.content, hit.sentence_ends)
    known = set(analysis.terms(hit.title))
    numbers = list(range(len(sentences)))
    if wanted := " ".join(word for word in analysis.terms(words) if word not in known):
        text = Sentences(hit.content, hit.sentence_ends, is_code(hit.doc_id))
        best = best_sentence(wanted, text, language)
        numbers = numbers if best is None else [best, *numbers]
    more = (n for n in numbers if not known.issuperset(analysis.terms(sentences[n])))
    number = next(more, None)
    return None if number is None else (number, sentences[number])


def _pointed(
    reply: ToolResult,
    documents: Sequence[Hit],
    sentence: tuple[int, str] | None,
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
    if sentence is not None:
        text = _without_title(sentence[1], documents[0].title)
        shown = cut_to(text, SENTENCE_TOKENS)
        is_cut, start = shown != text, at + len(line) + len(': "')
        line += f': "{shown}"'
        retrieved.append(shown)
        spans[0] = replace(
            spans[0],
            text_start=start,
            end=start + len(shown.removesuffix(CUT_MARK) if is_cut else shown),
            sentences=(sentence[0] + 1,),
            whole=not is_cut and len(documents[0].sentence_ends) == 1,
        )
    if reply.tokens + count_tokens(line) > max_tokens:
        return reply
    if sentence is not None and not is_cut:
        read_set.note(documents[0].id, [checksum(sentence[1])])
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
