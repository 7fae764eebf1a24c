"""A corpus and its questions with invented names and later years, to foil memory.

    python -m bench counterfactual CORPUS QUESTIONS --out DIR --seed 1

Writes corpus.jsonl, questions.jsonl, names.tsv (old and invented words) and report.json to DIR; the
same seed gives the same bytes. It then checks that no name of a chain is left, and that searches of
the gold chain find the hops that they found before. See bench/studies/counterfactual.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import orjson

from arag_search.questions.files import Question, json_records, load_questions
from arag_search.system.durable import replacing, write_atomically
from bench import BenchError
from bench.arguments import BenchParser, whole_from
from bench.counterfactual.compared import compared
from bench.counterfactual.found import (
    ARTICLES,
    Found,
    Phrases,
    Token,
    awards_in,
    is_kept,
    is_name,
    not_staying,
    tokens_of,
)
from bench.counterfactual.invented import Invented
from bench.counterfactual.rewriting import Rewriting
from bench.counterfactual.years import Years
from bench.gold_chain.names import known
from bench.report.fingerprints import questions_of
from bench.report.rows import Figure, Row, Target, circumstances, show

NAME = "counterfactual"
_LINES = 'JSON lines of {"title", "text"} or {"title", "sentences"}, in UTF-8'
_ORDINARY = 0.05
"""The share of the names of chains that may be an ordinary word."""


def main(arguments: Sequence[str]) -> int:
    """Rewrite a corpus and its questions, and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    add("source", type=Path, metavar="CORPUS", help=_LINES)
    add("questions", type=Path, metavar="QUESTIONS", help="a file of questions with answers")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the new data set")
    parser.add_default("--seed", whole_from(0), 1, "seed of the invented names")
    add("--json", type=Path, help="file of results (default report.json in DIR)")
    parser.add_kept_work("indexes", NAME)
    return parser.run(arguments, _rewritten)


def _rewritten(options: argparse.Namespace, command: str) -> int:
    corpus, folder = options.source, options.out
    outputs = folder / "corpus.jsonl", folder / "questions.jsonl"
    if {corpus.resolve(), options.questions.resolve()} & {path.resolve() for path in outputs}:
        raise BenchError(
            "The new data set would replace the old one.",
            where=str(folder),
            do="Name another folder with --out.",
        )
    questions = load_questions(options.questions)
    lexicon = _found(corpus, questions)
    invented, years = Invented(options.seed, lexicon.words, lexicon.is_proper), Years()
    rewriting = Rewriting(lexicon, invented, years)
    folder.mkdir(parents=True, exist_ok=True)
    records = (record for _, record in json_records(options.questions))
    for path, values in zip(outputs, (_records(corpus), records), strict=True):
        with replacing(path) as new, new.open("wb") as file:
            file.writelines(orjson.dumps(rewriting.record(value)) + b"\n" for value in values)
    words = "".join(f"{old}\t{new}\n" for old, new in sorted(invented.words.items()))
    write_atomically(folder / "names.tsv", words.encode())

    chain = {name: tokens_of(name) for name in lexicon.chain}
    ordinary = [name for name, tokens in chain.items() if _is_ordinary(tokens, lexicon)]
    left = _left([tokens for name, tokens in chain.items() if name not in ordinary], outputs)
    after = load_questions(outputs[1])
    hops, lost = compared((corpus, outputs[0]), (questions, after), options.work)
    few = Target("at most", _ORDINARY * len(chain))
    rows = (
        Row("names of chains", len(chain), ""),
        Row("names of chains that are left", len(left), "", target=Target("at most", 0)),
        Row("names of chains that are an ordinary word", len(ordinary), "", target=few),
        Row("words invented", len(invented.words), ""),
        Row("years and centuries moved", years.moved, ""),
        *hops,
    )
    lists = {
        "names that are left": left,
        "ordinary words, replaced in titles, quotes and questions alone": ordinary,
        "names of chains that stay": sorted(_that_stay(questions)),
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
    """Yield the records of a corpus, one at a time. Raises BenchError naming the line."""
    number = 0
    try:
        with corpus.open("rb") as file:
            for line in file:
                number += 1
                if line.strip(b"\xef\xbb\xbf \r\n\t"):
                    value = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
                    if not isinstance(value, dict):
                        raise ValueError("it is no object")
                    yield cast(dict[str, Any], value)
    except (ValueError, OSError) as error:
        raise BenchError(
            f"The corpus cannot be read ({error}).",
            where=f"{corpus}, line {number}" if number else str(corpus),
            allowed=_LINES,
        ) from error


def _texts(value: object) -> Iterator[str]:
    """Yield all strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        items = cast(dict[str, object] | list[object], value)
        for item in items.values() if isinstance(items, dict) else items:
            yield from _texts(item)


def _found(corpus: Path, questions: Sequence[Question]) -> Found:
    """Read a corpus and the chains of its questions. Raises BenchError if it has no words."""
    lexicon = Found()
    for record in _records(corpus):
        title = record.pop("title", None)
        lexicon.read(title if isinstance(title, str) else "", _texts(record))
    if not lexicon.words:
        raise BenchError("The corpus has no words.", where=str(corpus), allowed=_LINES)
    for question in questions:
        lexicon.ask(question.text, _names(question))
    return lexicon


def _names(question: Question) -> Iterator[str]:
    """Yield the names of the chain of a question, as the data has them and as it reveals them."""
    for hop in question.hops:
        yield from filter(None, (hop.subject, hop.title, hop.answer))
    for hop in known(question):
        yield from (hop.canonical, hop.surface)
    yield from (*question.answers, *question.supporting_titles)


def _that_stay(questions: Sequence[Question]) -> set[str]:
    """Return the names of chains that stay as they are, without dates."""
    names = {name: tokens_of(name) for question in questions for name in _names(question)}
    return {
        name
        for name, tokens in names.items()
        if is_name(tokens) and is_kept(tokens) and not any(map(str.isdigit, name))
    }


def _is_ordinary(tokens: Sequence[Token], lexicon: Found) -> bool:
    own = [token for token in tokens if token.key not in ARTICLES]
    return len(own) == 1 and not lexicon.is_proper(own[0].key)


def _left(names: Sequence[Sequence[Token]], outputs: Sequence[Path]) -> list[str]:
    """Return the old names that stand in the new data set outside of names that stay, each once."""
    old = Phrases()
    for tokens in names:
        old.add(tokens)
    left: set[str] = set()
    for text in (text for path in outputs for record in _records(path) for text in _texts(record)):
        tokens, awards = tokens_of(text), awards_in(text)
        open_ = set(not_staying([token.key for token in tokens]))
        for start, end in old.matches(tokens, any_case=False):
            at = tokens[start].start
            if open_ & set(range(start, end)) and not any(
                first <= at < last for first, last in awards
            ):
                left.add(text[at : tokens[end - 1].end])
    return sorted(left)
