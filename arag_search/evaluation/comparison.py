"""Compare the query interfaces of an index on questions: the first k passages of one search, and
the cost of the reply.

The first rule that a question allows says what counts as found. For ``passage`` it is the passage
of a known item, for ``documents`` judged ones, for ``evidence`` titles of gold passages. For
``answer`` it is the answer's words, which may stand in the passages by chance. Without a rule,
questions say only where the interfaces differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any, Literal

from arag_search.corpus import Chunk
from arag_search.evaluation.bootstrap import LEVEL, Interval, import_numpy, mean_interval
from arag_search.evaluation.interfaces import Interface
from arag_search.evaluation.text_match import evidence_recall, stands_in, whole_words
from arag_search.questions.question import Question
from arag_search.search.asked import MAX_TOOL_TOP_K
from arag_search.search.index import Index

Rule = Literal["passage", "documents", "evidence", "answer", "none"]
RULES: Mapping[Rule, str] = {
    "passage": "the passage that the need was made of",
    "documents": "relevant documents",
    "evidence": "titles of gold passages",
    "answer": "the answer's words stand in them, which may be by chance",
    "none": "no judgements: overlap and cost alone",
}
Answers = Sequence[Mapping[str, Any]]
_WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """One search: the passages that it showed, what they hold (None without a rule), and its
    cost."""

    ids: Sequence[str]
    share: float | None
    tokens: int
    milliseconds: float
    is_error: bool


@dataclass(frozen=True, slots=True)
class Row:
    """An interface over the questions of one rule. ``share`` is the mean share. ``beside_best`` is
    the paired difference from the interface that found most. Both are None without a rule, and
    ``beside_best`` also for the best. ``tokens`` is the mean of a reply, ``milliseconds`` the
    median."""

    interface: str
    share: Interval | None
    beside_best: Interval | None
    tokens: float
    milliseconds: float
    errors: int


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one rule: rows, the most found first, and without a rule the mean overlap
    (Jaccard) of the passages of each two interfaces. ``answers`` has a row for each question and
    interface."""

    rule: Rule
    questions: int
    rows: Sequence[Row]
    overlap: Mapping[str, float]
    answers: Answers


def compare(
    index: Index,
    questions: Sequence[Question],
    interfaces: Mapping[str, Interface],
    top_k: int,
    *,
    are_known_items: bool = False,
    tell: Callable[[int], None] = lambda done: None,
) -> list[Group]:
    """Ask every question of every interface, in an order that changes from one to the next, and
    return a group for each rule. Known items have the ids of their passages. ``tell`` takes the
    number of questions that are done. Raises MissingExtraError without numpy, and what the searches
    raise."""
    import_numpy()  # before the work, not after it
    names = list(interfaces)
    by_rule: dict[Rule, list[dict[str, Reply]]] = {}
    answers: dict[Rule, list[Mapping[str, Any]]] = {}
    for question in questions[:_WARM_UP]:
        for interface in interfaces.values():
            _ask(index, interface, question, "none", top_k)
    for number, question in enumerate(questions):
        rule: Rule = "passage" if are_known_items else _rule(question)
        turned = names[number % len(names) :] + names[: number % len(names)]
        replies = {name: _ask(index, interfaces[name], question, rule, top_k) for name in turned}
        by_rule.setdefault(rule, []).append(replies)
        about = {"id": question.id, "question": question.text, "type": question.type, "rule": rule}
        answers.setdefault(rule, []).extend(
            {**about, "interface": name, **asdict(replies[name])} for name in names
        )
        tell(number + 1)
    return [_group(rule, by_rule[rule], names, answers[rule]) for rule in RULES if rule in by_rule]


def _rule(question: Question) -> Rule:
    if question.relevant_ids:
        return "documents"
    if question.gold_titles:
        return "evidence"
    return "answer" if any(map(whole_words, question.answers)) else "none"


def _ask(index: Index, interface: Interface, question: Question, rule: Rule, top_k: int) -> Reply:
    began = time.perf_counter()
    arguments = interface.arguments(question.text)
    if arguments is None:
        return Reply((), None if rule == "none" else 0.0, 0, 0.0, is_error=True)
    offered = interface.tool.parameters["properties"]
    size = "top_k" if "top_k" in offered else "max_results"
    result = interface.tool.run({**arguments, size: top_k})
    spent = 1000 * (time.perf_counter() - began)
    chunks = _ranked(index, result.ids, question)
    if len(chunks) < len(result.ids):  # the next ones take the places of those left out
        further = interface.tool.run({**arguments, size: MAX_TOOL_TOP_K})
        chunks = _ranked(index, further.ids, question)[:top_k]
    share = _share_of(question, rule, chunks)
    return Reply(result.ids, share, result.tokens, spent, result.status == "error")


def _ranked(index: Index, ids: Sequence[str], question: Question) -> list[Chunk]:
    """Return passages whose documents the question does not leave out of rankings."""
    left_out = question.excluded_documents
    return [chunk for chunk in index.read(ids) if chunk and chunk.doc_id not in left_out]


def _share_of(question: Question, rule: Rule, chunks: Sequence[Chunk]) -> float | None:
    """Return the share of what is looked for that these passages hold."""
    if rule == "passage":
        return float(question.id in {chunk.id for chunk in chunks})
    if rule == "documents":
        relevant = question.relevant_ids
        return len({chunk.doc_id for chunk in chunks}.intersection(relevant)) / len(relevant)
    if rule == "evidence":
        return evidence_recall(question, [chunk.title for chunk in chunks])
    if rule == "answer":
        texts = [whole_words(f"{chunk.title} {chunk.content}") for chunk in chunks]
        return float(any(stands_in(gold, text) for gold in question.answers for text in texts))
    return None


def _group(
    rule: Rule, asked: Sequence[Mapping[str, Reply]], names: Sequence[str], answers: Answers
) -> Group:
    shares, beside = ({}, {}) if rule == "none" else _estimates(rule, asked, names)
    rows = [
        Row(
            name,
            shares.get(name),
            beside.get(name),
            fmean(replies[name].tokens for replies in asked),
            median(replies[name].milliseconds for replies in asked),
            sum(replies[name].is_error for replies in asked),
        )
        for name in sorted(names, key=lambda name: -shares[name].value if shares else 0.0)
    ]
    pairs = combinations(names, 2) if rule == "none" else ()
    overlap = {
        f"{first} + {other}": fmean(_jaccard(of[first].ids, of[other].ids) for of in asked)
        for first, other in pairs
    }
    return Group(rule, len(asked), rows, overlap, answers)


def _estimates(
    rule: Rule, asked: Sequence[Mapping[str, Reply]], names: Sequence[str]
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return what each interface found, and its difference from the best. All differences hold
    together at LEVEL (Bonferroni)."""
    table = import_numpy().array([[of[name].share or 0.0 for name in names] for of in asked])
    best = int(table.mean(axis=0).argmax())
    level = 1 - (1 - LEVEL) / max(len(names) - 1, 1)
    drawn = [None] * len(asked), f"measure {rule}"
    gaps = table - table[:, [best]]
    shares = {name: mean_interval(table[:, at], *drawn) for at, name in enumerate(names)}
    beside = {name: mean_interval(gaps[:, at], *drawn, level) for at, name in enumerate(names)}
    del beside[names[best]]
    return shares, beside


def _jaccard(first: Collection[str], other: Collection[str]) -> float:
    either = {*first, *other}
    return len({*first} & {*other}) / len(either) if either else 1.0
