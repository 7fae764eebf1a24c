"""arag-search measure: which query interface finds what on a corpus of one's own, and at what
cost."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from arag_search.cli.options.index import IndexFolder, Json, Opening
from arag_search.cli.options.parser import with_groups
from arag_search.cli.output.printing import print_result
from arag_search.cli.output.score_tables import interval_text, table_text
from arag_search.evaluation.bootstrap import NOT_TOLD_APART
from arag_search.evaluation.comparison import RULES, Group, Row, compare
from arag_search.evaluation.interfaces import interfaces_of
from arag_search.evaluation.judgements import checked_judgements
from arag_search.evaluation.known_items import known_items
from arag_search.questions.files import read_needs
from arag_search.search.asked import MAX_TOOL_TOP_K
from arag_search.system.progress import counted, open_progress

_KNOWN_ITEMS = (
    "The needs are the words of passages of this corpus, so they favour searches by words.\n"
    "Questions of your own say more: arag-search measure {} questions.jsonl\n"
    'Each line of the file has {{"question": "...", "answer": "..."}}; or write queries alone, one '
    "a line."
)


@with_groups
def measure_command(
    index: IndexFolder,
    questions: Annotated[
        Path | None,
        typer.Argument(
            help="Questions with judgements or answers, or queries, one a line.  [default: 50 "
            "needs made of sentences of the corpus]",
            metavar="QUESTIONS",
        ),
    ] = None,
    *,
    top_k: Annotated[
        int,
        typer.Option(
            "--top-k",
            help=f"Passages of a search, 1 to {MAX_TOOL_TOP_K}, as of a tool.",
            min=1,
            max=MAX_TOOL_TOP_K,
        ),
    ] = 5,
    limit: Annotated[
        int | None, typer.Option(help="Only the first N questions.", metavar="N", min=1)
    ] = None,
    opening: Opening,
    json: Json = False,
) -> int:
    """Compare words, keyword_search, logical queries, vectors and hybrid search on your corpus.

    Each asks every question once, as its tool does for a model. If questions are judged (folders of
    BEIR), the report counts their relevant documents among the first passages. Otherwise it counts
    titles of gold passages, or else answers, whose words must stand in the passages. A file of
    queries alone, one a line, shows how far the interfaces overlap and what they cost. Rules make
    the logical queries; a model would write better ones. No model is asked.

    Intervals are of 95 %. "Not told apart": these questions do not tell it from the best.

    Examples:

    \b
      arag-search measure my-index
      arag-search measure my-index questions.jsonl --top-k 10
      arag-search measure ~/notes queries.txt --json
    """
    with opening.open(index, is_long=True) as opened:
        interfaces = interfaces_of(opened)
        needs = known_items(opened) if questions is None else read_needs(questions)
        needs, judged_notes = checked_judgements(needs[:limit], opened)
        if "vectors" in interfaces:
            opened.encode_queries([need.text for need in needs])
        progress = open_progress()
        progress.begin("questions", len(needs))
        try:
            groups = compare(
                opened, needs, interfaces, top_k,
                are_known_items=questions is None,
                tell=lambda done: progress.update(done, done),
            )  # fmt: skip
        finally:
            progress.end()
    own = _KNOWN_ITEMS.format(shlex.quote(index))
    notes = own.splitlines() if questions is None else judged_notes
    if "vectors" not in interfaces:
        notes.append("The index has no vectors: arag-search embed makes them.")
    text = "\n\n".join([*(_text(group, top_k) for group in groups), "\n".join(notes)]).strip()
    described = {
        "location": index,
        "top_k": top_k,
        "notes": notes,
        "groups": [asdict(replace(group, answers=())) for group in groups],
        "questions": [row for group in groups for row in group.answers],
    }
    return print_result(text, described, json)


def _text(group: Group, top_k: int) -> str:
    asked = counted(group.questions, "question")
    passages = counted(top_k, "passage")
    lines = [f"{asked}, first {passages} of a search. Found: {RULES[group.rule]}."]
    head = ("", "found", "95 %", "beside the best", "tokens of a reply", "ms")
    lines += table_text([head, *(_cells(row, group) for row in group.rows)])
    if group.overlap:
        lines += ["", "Passages in common (Jaccard):"]
        lines += table_text([(names, f"{share:.2f}") for names, share in group.overlap.items()])
    refused = [f"{row.interface} {row.errors}" for row in group.rows if row.errors]
    return "\n".join([*lines, *([f"Could not be asked: {', '.join(refused)}."] if refused else [])])


def _cells(row: Row, group: Group) -> Sequence[str]:
    costs = (f"{row.tokens:,.0f}", f"{row.milliseconds:,.1f}")
    if row.share is None:
        return (row.interface, "-", "", "", *costs)
    return (row.interface, f"{row.share.value:.3f}", interval_text(row.share), _beside(row), *costs)


def _beside(row: Row) -> str:
    if row.beside_best is None:
        return "best"
    if not row.beside_best.is_resolved:
        return NOT_TOLD_APART
    return f"{row.beside_best.value:+.3f} {interval_text(row.beside_best)}"
