"""Steps, answers and totals of questions, and whole records, as commands show them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from arag_search.agent.record import Record, Step, citation_warning, hits_text
from arag_search.agent.sources import sources_of, with_titles
from arag_search.corpus import Chunk
from arag_search.engines.hits import join_sentences
from arag_search.query import analysis
from arag_search.search.index import Index
from arag_search.tokens import cut_to
from arag_search.tools.replies.writing import header_line, one_line

MAX_EVIDENCE_TOKENS = 80
_EVIDENCE_SENTENCES = 2
_WORD_CHARACTERS = 4
_MAIN_ARGUMENTS = ("query", "queries", "keywords", "chunk_ids", "reference_id", "patterns")


def step_line(step: Step) -> str:
    """Describe one step on one line: tool, arguments, hits, tokens."""
    return (
        f"{step.step:>2}  {step.tool_name}  {one_line(call_text(step.tool_input))}  "
        f"({hits_text(step)}, {step.result_tokens:,} tokens, {step.seconds:.1f} s)"
    )


def call_text(arguments: Any) -> str:
    """Format the arguments of a call, the main one first and without its name."""
    if not isinstance(arguments, Mapping):
        return str(arguments)
    values = dict(cast(Mapping[str, object], arguments))
    main = [values.pop(name) for name in _MAIN_ARGUMENTS if name in values]
    words = [item if isinstance(item, str) else _items(item) for item in main]
    return " ".join([*words, *(f"{name}={_items(value)}" for name, value in values.items())])


def _items(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in cast(list[object], value))
    return value if isinstance(value, str) else json.dumps(value)


def answer_text(record: Record, index: Index, previous: Sequence[Record] = ()) -> str:
    """Format the answer, its reason, and the passages or documents that it rests on. ``previous``
    are the records of the conversation before it."""
    sources = sources_of(record, index, previous) if record.citations else []
    lines = [with_titles(record.answer_short or record.answer, sources)]
    if record.explanation:
        lines += ["", with_titles(record.explanation, sources)]
    if record.citations:
        lines += ["", "Sources, with how much each helps:"]
    for source in sources:
        link = f"  {source.link}" if source.link else ""
        again = " (found before)" if source.reference in record.reused else ""
        lines.append(f"  {source.score:.2f}  [{source.reference}] {source.name}{again}{link}")
    cited = [chunk_id for chunk_id in record.cited_ids if chunk_id not in record.wrong_ids]
    if cited and not record.citations:
        lines += ["", "Evidence:"]
        words = _words(f"{record.answer_short} {record.question}")
        for chunk in filter(None, index.read(cited)):
            lines.append(header_line(chunk.id, chunk.title, chunk.part, chunk.parts))
            lines.append(f"  {_evidence(chunk, words, record.answer_short)}")
    if warning := citation_warning(record):
        lines += ["", warning]
    return "\n".join(lines)


def _evidence(chunk: Chunk, words: frozenset[str], answer: str) -> str:
    """Return the sentences that hold the answer and then those with most of the words, in text
    order."""
    sentences = chunk.sentences()
    points = [
        (answer.casefold() in sentence.casefold(), len(words & _words(sentence)))
        for sentence in sentences
    ]
    best = sorted(range(len(sentences)), key=lambda at: points[at], reverse=True)
    chosen = sorted(at for at in best[:_EVIDENCE_SENTENCES] if any(points[at]) or at == best[0])
    return cut_to(one_line(join_sentences(sentences, chosen)), MAX_EVIDENCE_TOKENS)


def _words(text: str) -> frozenset[str]:
    """Return the words of a text that are long enough to distinguish sentences."""
    return frozenset(term for term in analysis.terms(text) if len(term) >= _WORD_CHARACTERS)


def totals_line(record: Record, model: str) -> str:
    """Format the totals of a question."""
    steps, usage = len(record.trajectory), record.usage
    counted = " (counted by us)" if usage.source == "counted" else ""
    forced = ", answer forced" if record.status == "forced" else ""
    cost = "" if record.total_cost is None else f", ${record.total_cost:.4f}"
    return (
        f"{steps} {'step' if steps == 1 else 'steps'}{forced}, "
        f"{record.total_retrieved_tokens:,} retrieved tokens; {model}: "
        f"{usage.prompt_tokens:,} prompt{_of_which(usage.cached_tokens, 'cached')} and "
        f"{usage.completion_tokens:,} completion tokens"
        f"{_of_which(usage.reasoning_tokens, 'of thoughts')}"
        f"{counted}{cost}; {record.seconds:.1f} s"
    )


def _of_which(count: int, kind: str) -> str:
    return f" ({count:,} {kind})" if count else ""


def trajectory_text(record: Record, model: str) -> str:
    """Format a whole record: question, every step in full, answer, totals."""
    lines = [f"Question {record.question_id}: {record.question}"]
    for step in record.trajectory:
        lines.append("")
        if step.reasoning:
            lines += [line for line in step.reasoning.splitlines() if line.strip()]
        lines.append(f"> {step.tool_name} {call_text(step.tool_input)}")
        lines.append(step.tool_output)
        lines.append(
            f"  (step {step.step}: {step.status}, {hits_text(step)}, {step.retrieved_tokens:,} "
            f"retrieved of {step.result_tokens:,} tokens, {step.seconds:.1f} s"
            f"{'; the call was read from text' if step.from_text else ''})"
        )
    lines.append("")
    if record.failure is not None:
        lines.append(f"Failed: {record.failure}")
        if record.answer:
            lines += ["What there is of an answer, as the model wrote it:", record.answer]
    else:
        lines += ["Answer, as the model wrote it:", record.answer]
        if record.citation == "cited":
            lines.append(f"  (cites {', '.join(record.cited_ids)}, all of them shown)")
        elif warning := citation_warning(record):
            lines.append(f"  ({warning})")
    lines += ["", totals_line(record, model), *record.warnings]
    lines.append(f"Preset {record.fingerprints.get('preset', '')}, {record.status}.")
    return "\n".join(lines)
