"""A corpus and its questions with invented names and later years, to foil memory.

    python -m bench counterfactual CORPUS QUESTIONS --out DIR --seed 1

Writes corpus.jsonl, questions.jsonl, names.tsv (old and invented words) and report.json to DIR; the
same seed gives the same bytes. It then checks that no name of a chain is left, and that searches of
the gold chain find the hops that they found before. See bench/studies/counterfactual.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import orjson

from arag_search.agent.wording import normalise
from arag_search.evaluation.text_match import without_brackets
from arag_search.questions.fields import parsed
from arag_search.questions.files import Question, json_records, load_questions
from arag_search.system.durable import replacing, write_atomically
from bench import BenchError
from bench.arguments import BenchParser, whole_from
from bench.counterfactual.names import Names, bare, is_name, read
from bench.counterfactual.rewriting import Invented, Rewriting
from bench.counterfactual.years import Years
from bench.gold_chain.ground import Asked, open_ground
from bench.gold_chain.names import known
from bench.gold_chain.policy import ORDERS
from bench.gold_chain.searcher import Searcher
from bench.report.fingerprints import questions_of
from bench.report.rows import Figure, Row, Target, circumstances, show
from index_jobs.sources.lines.files import CorpusFile

NAME = "counterfactual"
_LINES = 'JSON lines of {"title", "text"} or {"title", "sentences"}, in UTF-8'
_FEW = 0.05
"""The share of the names of chains that may be an ordinary word, and of hops that may be lost."""
_SEED = 1
_ORDER = ORDERS["Q1 Q2 Q3"]


def main(arguments: Sequence[str]) -> int:
    """Rewrite a corpus and its questions, and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    add("source", type=Path, metavar="CORPUS", help=_LINES)
    add("questions", type=Path, metavar="QUESTIONS", help="a file of questions with answers")
    add(
        "--out", type=Path, metavar="DIR", help="folder of the new data set (default: in the cache)"
    )
    parser.add_default("--seed", whole_from(0), 1, "seed of the invented names")
    add("--json", type=Path, help="file of results (default report.json in DIR)")
    parser.add_kept_work("indexes", NAME)
    return parser.run(arguments, _rewritten)


def _rewritten(options: argparse.Namespace, command: str) -> int:
    corpus: Path = options.source
    folder: Path = options.out or options.work / corpus.resolve().parent.name
    outputs = folder / "corpus.jsonl", folder / "questions.jsonl"
    if {corpus.resolve(), options.questions.resolve()} & {path.resolve() for path in outputs}:
        raise BenchError(
            "The new data set would replace the old one.",
            where=str(folder),
            do="Name another folder with --out.",
        )
    questions = load_questions(options.questions)
    chains = sorted({without_brackets(name) for of in questions for name in _names(of)})
    names = _found(corpus, questions, chains)
    invented, years = Invented(options.seed, names.words, names.is_proper), Years()
    rewriting = Rewriting(names, invented, years)
    folder.mkdir(parents=True, exist_ok=True)
    records = [rewriting.record(record) for record in _records(corpus)]
    # Neighbours in a file are passages of one question, which ids by their places would tell.
    Random(f"{options.seed} passages").shuffle(records)
    asks = [rewriting.record(of, is_question=True) for _, of in json_records(options.questions)]
    for path, values in zip(outputs, (records, asks), strict=True):
        with replacing(path) as new, new.open("wb") as file:
            file.writelines(orjson.dumps(value) + b"\n" for value in values)
    words = "".join(f"{old}\t{new}\n" for old, new in sorted(invented.words.items()))
    write_atomically(folder / "names.tsv", words.encode())

    asked = {name: read(name) for name in chains if is_name(read(name).tokens)}
    chain = [name for name, text in asked.items() if not text.is_kept()]
    stay = [name for name in asked if name not in chain and not any(map(str.isdigit, name))]
    ordinary = [n for n in chain if len(bare(n)) == 1 and not names.is_proper(bare(n)[0])]
    left = _left([name for name in chain if name not in ordinary], outputs)
    after = load_questions(outputs[1])
    halves = _halves(outputs[0], questions, after)
    hops, lost = _compared((corpus, outputs[0]), (questions, after), options.work)
    few = Target("at most", _FEW * len(chain))
    rows = (
        Row("names of chains", len(chain), ""),
        Row("names of chains that are left", len(left), "", target=Target("at most", 0)),
        Row("gold words left in their passages", len(halves), "", target=Target("at most", 0)),
        Row("names of chains that are an ordinary word", len(ordinary), "", target=few),
        Row("words invented", len(invented.words), ""),
        Row("years and centuries moved", years.moved, ""),
        *hops,
    )
    lists = {
        "names that are left": left,
        "replaced words of answers that are left in passages of their hops": halves,
        "ordinary words, replaced in titles, quotes and questions alone": ordinary,
        "names of chains that stay": stay,
        "hops lost": lost,
    }
    details = {**lists, "questions": questions_of(questions)}
    figure = Figure(corpus.resolve().parent.name, rows, details)
    path = options.json or folder / "report.json"
    show(path, [figure], circumstances(command, seed=options.seed))
    for what, entries in lists.items():
        shown = (", ".join(map(str, e.values())) if isinstance(e, dict) else e for e in entries)
        print(f"\n{what} ({len(entries)}): {'; '.join(shown)}")
    return 0


def _records(corpus: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a corpus, one at a time. Raises AragError naming the line."""
    with CorpusFile(corpus, str(corpus)) as file:
        for number, line in enumerate(file.stream, 1):
            if line.strip():
                where = f"{corpus}, line {number}"
                value = parsed(line, "line", where, _LINES)
                if not isinstance(value, dict):
                    raise BenchError("The line is no object.", where=where, allowed=_LINES)
                yield cast(dict[str, Any], value)


def _texts(value: object) -> Iterator[str]:
    """Yield all strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        items = cast(dict[str, object] | list[object], value)
        for item in items.values() if isinstance(items, dict) else items:
            yield from _texts(item)


def _found(corpus: Path, questions: Sequence[Question], chains: Sequence[str]) -> Names:
    """Return the names of a corpus and of chains. Raises BenchError if it has no words."""
    names = Names()
    for record in _records(corpus):
        title = record.pop("title", None)
        names.count(title if isinstance(title, str) else "", _texts(record))
    if not names.words:
        raise BenchError("The corpus has no words.", where=str(corpus), allowed=_LINES)
    for question in questions:
        names.words.update(read(question.text).keys)
    for name in chains:
        if is_name(read(name).tokens):
            names.add(name)
    return names


def _names(question: Question) -> Iterator[str]:
    """Yield the names of the chain of a question, as the data has them and as it reveals them."""
    for hop in question.hops:
        yield from filter(None, (hop.subject, hop.title, hop.answer))
    for hop in known(question):
        yield from (hop.canonical, hop.surface)
    yield from (*question.answers, *question.supporting_titles)


def _left(names: Sequence[str], outputs: Sequence[Path]) -> list[str]:
    """Return the old names that stand in the new data set outside of names that stay, each once."""
    old = Names(names)
    texts = (text for path in outputs for record in _records(path) for text in _texts(record))
    return sorted(
        {
            text.text[text.tokens[span[0]].start : text.tokens[span[-1]].end]
            for text in map(read, texts)
            for span in old.spans(text)
            if not text.stays.issuperset(span)
        }
    )


def _halves(corpus: Path, questions: Sequence[Question], after: Sequence[Question]) -> list[str]:
    """Return the replaced words of answers of hops that are left in a passage of their hop."""
    words: dict[tuple[str, ...], set[str]] = {}
    for record in _records(corpus):
        keys = words.setdefault(bare(str(record.get("title", ""))), set())
        keys.update(key for text in _texts(record) for key in read(text).keys)
    return [
        f"{word} in {now.title or now.subject}"
        for old, new in zip(questions, after, strict=True)
        for was, now in zip(old.hops, new.hops, strict=True)
        for word in sorted({*read(was.answer).keys} - {*read(now.answer).keys})
        if len(word) > 1 and word in words.get(bare(now.title or now.subject or ""), ())
    ]


class _Hop(NamedTuple):
    """A hop of a question, as it was searched for."""

    asked: Asked
    number: int
    is_found: bool


def _compared(
    corpora: Sequence[Path], questions: Sequence[Sequence[Question]], work: Path
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return rows of the hops that are lost, and each lost hop with its cause. Questions that are
    answered yes or no count apart; those without a chain are left out. ``corpora`` and
    ``questions`` are those before and after."""
    before, after = (
        _walked(corpus, [question for question in asked if question.hops], work / side)
        for corpus, asked, side in zip(corpora, questions, ("before", "after"), strict=True)
    )
    losses: dict[str, list[bool]] = {}
    lost: list[dict[str, Any]] = []
    for old, new in zip(before, after, strict=True):
        if old.is_found:
            question, at = old.asked.question, old.number
            kind = "yes/no" if normalise("".join(question.answers)) in ("yes", "no") else "other"
            losses.setdefault(kind, []).append(not new.is_found)
            if not new.is_found:
                name, now = (of.known[at].surface for of in (old.asked, new.asked))
                hop = {"question": question.id, "hop": at + 1, "name": name, "now": now}
                lost.append({**hop, "cause": _cause(old, new)})
    return [_counted(f"hops lost, {kind} questions", of) for kind, of in losses.items()], lost


def _walked(corpus: Path, questions: Sequence[Question], work: Path) -> list[_Hop]:
    """Search for the hops of the questions, with names as the question or a hop before has them."""
    if not questions:
        return []
    ground = open_ground(corpus, questions, work / corpus.resolve().parent.name, None)
    with closing(ground.index):
        searcher = Searcher(ground.index, "logical")
        return [
            _Hop(asked, number, hop.shown)
            for asked in ground.asked
            for number, hop in enumerate(searcher.walk(asked.chain("surface", _SEED), _ORDER))
        ]


def _counted(what: str, losses: Sequence[bool]) -> Row:
    """Return how many hops are lost, with the interval of Wilson (1927) at 95 %."""
    count, total, z = sum(losses), len(losses), 1.96
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    low, high = (round(total * bound, 1) for bound in (middle - half, middle + half))
    return Row(what, count, f"of {total:,}", low, high, Target("at most", _FEW * total))


def _cause(old: _Hop, new: _Hop) -> str:
    """Return why a hop is found no longer."""
    was, now = (len(hop.asked.evidence[hop.number]) for hop in (old, new))
    if not now:
        return "its passage is not found by its title"
    if was != now:
        return "the answer stands in other passages"
    return "the queries find other passages first"
