"""arag-search questions: describe a file of questions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from arag_search.cli.options.index import Json
from arag_search.cli.output.printing import print_json, print_text
from arag_search.errors import ArgumentError
from arag_search.evaluation.description import Description, Resolution, describe
from arag_search.evaluation.unavailable import GONE, STILL_PRESENT, TakenAway, take_away
from arag_search.questions.files import load_questions, read_questions
from arag_search.questions.question import Hop, Question
from arag_search.questions.record import plain_record
from arag_search.search.index import open_index
from arag_search.system.durable import write_atomically
from arag_search.system.progress import counted

_LABEL_WIDTH = 13
_UNRESOLVED_SHOWN = 5


def questions_command(
    file: Annotated[
        Path,
        typer.Argument(help="A file of questions, or a folder of BEIR.", metavar="FILE"),
    ],
    index: Annotated[
        str | None,
        typer.Option(
            help="The folder or address of an index: resolve the evidence to its passages.",
            metavar="INDEX",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Describe a file of questions before it is run or measured.

    Reports the data set that the file is read as, the number of questions by type and number of
    hops, the kinds of their answers and the evidence they name, and shows three of them. It also
    lists problems that would make figures doubtful: duplicate questions, and questions that name no
    evidence.

    With --index, it also reports how much of the evidence the index holds. A passage is identified
    by its text, otherwise by its title (exact, then ignoring case and punctuation, then without
    brackets at the end), otherwise as the only one with the subject and the object of a fact. If a
    passage lacks the answer of its hop, and a later rule identifies one that has it, the later one
    is taken. This holds the texts of the whole index in memory.

    Files are JSON lines or a JSON array of {"id", "question", "answer"}, with "question_type",
    "answer_aliases", "supporting_titles", "supporting_passages", "evidence" and "hops" where known;
    those of A-RAG, 2WikiMultiHopQA, MuSiQue, HotpotQA, GraphRAG-Bench, KILT, WixQA, FinanceBench
    and BrowseComp-Plus (decrypted) are read as they are, and so is a folder of BEIR with
    queries.jsonl and qrels/*.tsv.

    Examples:

    \b
      arag-search questions q.jsonl
      arag-search questions q.jsonl --index my-index
      arag-search questions beir/scifact --json
    """
    read = read_questions(file)
    if index is None:
        description = describe(read)
    else:
        with open_index(index) as opened:
            description = describe(read, opened.scan())
    if json:
        print_json(description.to_json(), pretty=True)
    else:
        print_text(description_text(description, index))
    return 0


def description_text(description: Description, index: str | None) -> str:
    """Format a description for reading."""
    answers, evidence = description.answers, description.evidence
    shapes = ", ".join(description.shapes)
    lines = [
        f"{description.path}: {counted(description.questions, 'question')}, read as {shapes}",
        *_line("types", _counts(description.types, unnamed="without a type")),
        *_line("hops", _counts({_hops(hops): count for hops, count in description.hops.items()})),
        *_line(
            "answers",
            _named(
                ("with aliases", answers.with_aliases),
                ("yes or no", answers.yes_or_no),
                ("in the question", answers.in_the_question),
                ("unanswerable", answers.unanswerable),
                ("without any", answers.without_any),
            )
            or "one each",
        ),
        *_line(
            "evidence",
            _named(
                ("hops", evidence.hops),
                ("titles", evidence.titles),
                ("sentences", evidence.sentences),
                ("passages", evidence.passages),
                ("judged documents", evidence.judged_documents),
                ("none", evidence.none),
            ),
        ),
    ]
    if description.resolution is not None:
        lines += _resolution_lines(description.resolution, str(index))
    lines += _line("fingerprint", description.fingerprints["questions"][:16])
    for number, question in enumerate(description.examples, 1):
        lines += ["", f"Example {number}", *_example_lines(question)]
    lines += ["", *(f"Problem: {problem}" for problem in description.problems)]
    return "\n".join(lines if description.problems else [*lines, "No problems found."])


def _resolution_lines(resolution: Resolution, index: str) -> list[str]:
    lines = _line("index", f"{index}, {resolution.passages:,} passages")
    if resolution.questions:
        lines += _line("resolved by", _counts(resolution.by_rule))
        lines += _line(
            "found whole",
            f"{resolution.whole:,} of {resolution.questions:,} questions; several passages hold "
            f"{resolution.several:,} of {resolution.pieces:,} pieces, and any of them counts",
        )
    if resolution.documents:
        lines += _line(
            "documents", f"{resolution.documents_found:,} of {resolution.documents:,} relevant ones"
        )
    for id, name in resolution.unresolved[:_UNRESOLVED_SHOWN]:
        lines += _line("unresolved", f"{name} ({id})")
    more = len(resolution.unresolved) - _UNRESOLVED_SHOWN
    return lines + (_line("", f"and {more:,} more: --json names them") if more > 0 else [])


def _example_lines(question: Question) -> list[str]:
    answers = " | ".join(question.answers) or "none; documents are judged"
    lines = [*_line("id", question.id), *_line("question", question.text)]
    lines += _line("answer", answers if question.answerable else f"none (not {answers})")
    if question.type is not None:
        lines += _line("type", question.type)
    for number, hop in enumerate(question.hops, 1):
        lines += _line(f"hop {number}", _hop_text(hop))
    if not question.hops and question.supporting_titles:
        lines += _line("titles", " | ".join(question.supporting_titles))
    return lines


def _hop_text(hop: Hop) -> str:
    asked = hop.question or " · ".join(filter(None, (hop.subject, hop.relation))) or "?"
    title = f"  [{hop.title}]" if hop.title is not None else ""
    return f"{asked} -> {hop.answer}{title}"


def _line(label: str, text: str) -> list[str]:
    """Return a line with its label; nothing without a text."""
    return [f"  {label:<{_LABEL_WIDTH}}{text}"] if text else []


# arag-search unavailable: questions without their evidence


def _counts(counts: Mapping[str, int], unnamed: str = "") -> str:
    return _named(*((name or unnamed, count) for name, count in counts.items()))


def _named(*counts: tuple[str, int]) -> str:
    pieces: Iterable[str] = (f"{name} {count:,}" for name, count in counts if count)
    return ", ".join(pieces)


def _hops(hops: int) -> str:
    return "none" if not hops else f"{hops} {'hop' if hops == 1 else 'hops'}"


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
    json: Json = False,
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
    questions = load_questions(file)
    with open_index(index) as opened:
        taken = take_away(questions, opened.scan(), lambda chosen: chosen[:limit])
    _write(taken, out)
    if json:
        print_json(_json(taken, out), pretty=True)
    else:
        print_text(_text(taken, index, out))
    return 0


def _write(taken: TakenAway, out: Path) -> None:
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


def _taken_counts(taken: TakenAway) -> dict[str, int]:
    return {type: taken.count(type) for type in (GONE, STILL_PRESENT)}


def _json(taken: TakenAway, out: Path) -> dict[str, Any]:
    return {
        "questions": {"file": str(out / QUESTIONS_FILE), **_taken_counts(taken)},
        "left_out": dict(taken.left_out),
        "filter": {"file": str(out / FILTER_FILE), "documents": list(taken.documents)},
        "passages": {"all": taken.passages, "removed": taken.removed},
    }


def _text(taken: TakenAway, index: str, out: Path) -> str:
    types = ", ".join(f"{type} {count:,}" for type, count in _taken_counts(taken).items())
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
