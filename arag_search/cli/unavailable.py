"""arag-search unavailable: questions without their evidence."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from arag_search.evaluation.unavailable import TakenAway

QUESTIONS_FILE = "questions.jsonl"
FILTER_FILE = "filter.txt"


def unavailable_command(
    file: Annotated[Path, typer.Argument(help="A file of questions.", metavar="FILE")],
    index: Annotated[
        str, typer.Option(help="The folder or address of the index.", metavar="INDEX")
    ],
    out: Annotated[Path, typer.Option(help="A folder for both files.", metavar="DIR")],
    limit: Annotated[
        int | None,
        typer.Option(
            help="The largest number of questions.", metavar="N", min=1, show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Remove the evidence of questions, to check that a model then refuses to answer.

    Chooses questions whose answer can only be read in the corpus: an answer other than yes or no,
    which is not in the question, and whose evidence is all in the index. It writes them to
    DIR/questions.jsonl, as unanswerable, and writes to DIR/filter.txt a scope that excludes every
    document with any of their evidence. Nothing is deleted: the scores of the other documents still
    use the statistics of the whole corpus.

    The remaining passages are then searched for the answers. Questions whose answer is still there
    get a separate type, so that a score reports them separately.

    Example:

    \b
      arag-search unavailable q.jsonl --index my-index --out gone
      arag-search run my-index gone/questions.jsonl --filter "$(cat gone/filter.txt)" \\
        --preset logical_read --model gpt-4o-mini --out runs/gone
      arag-search score runs/gone --judge gpt-4o
    """
    from arag_search.cli.output.printing import print_json, print_text
    from arag_search.evaluation.unavailable import take_away
    from arag_search.questions.files import load_questions
    from arag_search.search.index import open_index

    questions = load_questions(file)
    with open_index(index) as opened:
        taken = take_away(questions, opened.scan(), limit)
    _write(taken, out)
    if json:
        print_json(_json(taken, out), pretty=True)
    else:
        print_text(_text(taken, index, out))
    return 0


def _write(taken: TakenAway, out: Path) -> None:
    import orjson

    from arag_search.errors import ArgumentError
    from arag_search.questions.record import plain_record
    from arag_search.system.durable import write_atomically

    lines = [
        orjson.dumps(plain_record(question), option=orjson.OPT_APPEND_NEWLINE)
        for question in taken.questions
    ]
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / QUESTIONS_FILE, b"".join(lines))
        write_atomically(out / FILTER_FILE, taken.filter.encode() + b"\n")
    except OSError as error:
        raise ArgumentError(
            f"The files cannot be written ({error.strerror}).",
            where=str(out),
            allowed="a folder that can be written to",
            do="Name another one with --out.",
        ) from error


def _counts(taken: TakenAway) -> dict[str, int]:
    from arag_search.evaluation.unavailable import GONE, STILL_PRESENT

    return {type: taken.count(type) for type in (GONE, STILL_PRESENT)}


def _json(taken: TakenAway, out: Path) -> dict[str, Any]:
    return {
        "questions": {"file": str(out / QUESTIONS_FILE), **_counts(taken)},
        "left_out": dict(taken.left_out),
        "filter": {"file": str(out / FILTER_FILE), "documents": list(taken.documents)},
        "passages": {"all": taken.passages, "removed": taken.removed},
    }


def _text(taken: TakenAway, index: str, out: Path) -> str:
    types = ", ".join(f"{type} {count:,}" for type, count in _counts(taken).items())
    left_out = ", ".join(f"{reason} {count:,}" for reason, count in taken.left_out.items())
    again = shlex.join(["arag-search", "run", index, str(out / QUESTIONS_FILE)])
    lines = [
        f"{len(taken.questions):,} questions: {types}.",
        *([f"Left out: {left_out}."] if left_out else []),
        f"{len(taken.documents):,} documents are out of scope, {taken.removed:,} of "
        f"{taken.passages:,} passages; statistics are those of the whole corpus.",
        f'Next: {again} --filter "$(cat {shlex.quote(str(out / FILTER_FILE))})" --preset PRESET '
        "--out RUN",
    ]
    return "\n".join(lines)
