"""Needs of the gold chain with an exclusion, by kind of search.

    python -m bench exclusions
    python -m bench exclusions --sets musique --questions 20

A need is a hop of the chain, "name relation, but not X". X is the title of the first passage that a
search for the name finds besides the evidence and passages titled with the name: a passage about
something else that mentions it. The passages with the evidence are relevant, also if they mention
X; those titled X are excluded. The logical query is the name without X. See
bench/studies/retrieval.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from arag_search.evaluation.bootstrap import SEED
from arag_search.evaluation.text_match import without_brackets
from arag_search.query.printing import quoted
from arag_search.questions.files import Question, load_questions
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.vectors.encoders.model_files import OFFLINE_PACKAGE
from bench.arguments import BenchParser, positive
from bench.data import corpus_file, sets_in
from bench.gold_chain.ground import Asked, check_chains, open_ground
from bench.quality.data_sets import drawn, kept_passage_vectors
from bench.quality.judged import SEARCHES, WITH_QUERIES, figure_of, measure
from bench.quality.packed import PUBLISHED
from bench.report.fingerprints import encoder_of, questions_of
from bench.report.rows import circumstances, corpus_of, show

NAME = "exclusions"
SETS = ("2wikimultihopqa", "musique")
_LOOKED_AT = 20
"""The number of passages that mention the name, from which X is chosen."""


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen data sets and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    add("--sets", nargs="+", default=SETS, metavar="SET", help="data sets with chains of facts")
    add("--questions", type=positive, metavar="N", help="questions of each, drawn by a seed")
    parser.add_default("--encoder", str, OFFLINE_PACKAGE, "encoder of the vectors")
    parser.add_data()
    parser.add_kept_work("indexes and vectors", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=SEED)
    for name, folder in sets_in(options.data, options.sets).items():
        corpus, work = corpus_file(folder), options.work / name
        location, vectors = kept_passage_vectors(corpus, work / PUBLISHED, options.encoder)
        questions = drawn(load_questions(folder / "questions.jsonl"), options.questions, name)
        check_chains(questions, name)
        ground = open_ground(corpus, PUBLISHED, questions, work, None)
        ground.index.close()
        with open_index(location, vectors=vectors, search_timeout_s=None) as index:
            needs: list[Question] = []
            queries: dict[str, str] = {}
            for asked in ground.asked:
                for need, query in needs_of(index, asked):
                    needs.append(need)
                    queries[need.id] = query
            index.encode_queries([need.text for need in needs])
            values, refused = measure(index, needs, queries, {**SEARCHES, **WITH_QUERIES})
            details = {
                "corpus": corpus_of(index.manifest),
                "encoder": encoder_of(index.open_vectors().encoder.identity),
                "questions": questions_of(questions),
                "refused": refused,
            }
        show(options.json, [figure_of(name, values, details)], run)
    return 0


def needs_of(index: Index, asked: Asked) -> Iterator[tuple[Question, str]]:
    """Yield a need, and the logical query for it, for each hop of a question that has evidence and
    a passage to exclude."""
    for number, (known, evidence) in enumerate(zip(asked.known, asked.evidence, strict=True)):
        name = known.canonical
        excluded = _excluded(index, name, frozenset(evidence)) if evidence else None
        if excluded is None:
            continue
        title, ids = excluded
        text = f"{name} {known.relation}, but not {title}"
        chunks = index.read(list(evidence))
        documents = {chunk.doc_id: 1 for chunk in chunks if chunk is not None}
        grades = {**dict.fromkeys(ids, -1), **documents}
        need = Question(
            f"{asked.question.id} {number}", text, (), relevant_documents=tuple(grades.items())
        )
        yield need, excluding(name, title)


def excluding(name: str, title: str) -> str:
    """Return the logical query for a name without another one. To measure another operator in place
    of NOT, change this function."""
    return f"{quoted(name)} NOT {quoted(title)}"


def _excluded(index: Index, name: str, evidence: frozenset[str]) -> tuple[str, list[str]] | None:
    """Return the title of the first other passage that mentions the name, and the documents with
    this title; None if there is none."""
    hits = index.logical_search(quoted(name), top_k=_LOOKED_AT, feedback=False).hits
    own = {without_brackets(hit.title).lower() for hit in hits if hit.id in evidence}
    own.add(name.lower())
    for hit in hits:
        title = without_brackets(hit.title).strip()
        if hit.id not in evidence and title and title.lower() not in own:
            same = [other.doc_id for other in hits if other.title == hit.title]
            return title, [id for id in dict.fromkeys(same) if id not in evidence]
    return None
