"""Needs whose answer is a set, by interface and by depth of their logic.

    python -m bench sets
    python -m bench sets --documents 100000 --lines "words,rules,known query"
    python -m bench sets --limit ../shared/data/limit

Prints the figure, adds it to the file of results and draws it. See bench/studies/sets.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import orjson

from arag_search.evaluation.bootstrap import SEED as DRAWS
from arag_search.questions.files import QRELS_FOLDER, QRELS_HEAD, QUERIES_FILE, load_questions
from arag_search.search.opening import open_index
from arag_search.system.progress import open_progress
from arag_search.tokens import count_tokens
from arag_search.vectors.encoders.model_files import OFFLINE_PACKAGE
from bench.arguments import BenchParser, names_from, whole_from
from bench.report.rows import circumstances, corpus_of, show
from bench.sets.lines import BY_VECTORS, LINES, values
from bench.sets.needs import Need, needs
from bench.sets.people import FIELDS, SEED, attributes, person
from bench.sets.report import draw, figure_of
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

NAME, CORPUS = "sets", "corpus.jsonl"


def main(arguments: Sequence[str]) -> int:
    """Measure the chosen interfaces and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    parser.add_default("--documents", whole_from(1_000), 10_000, "made people, from 1,000")
    parser.add_default("--needs", whole_from(12), 60, "needs of each depth, from 12")
    add = parser.add_argument
    add("--limit", type=Path, metavar="DIR", help="LIMIT as published, instead of made people")
    lines, default = names_from(LINES), tuple(LINES)
    add("--lines", type=lines, default=default, help=f"some of {','.join(LINES)} (default all)")
    parser.add_default("--encoder", str, OFFLINE_PACKAGE, "encoder of the vectors")
    parser.add_kept_work("the made set with its index and vectors", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=DRAWS)  # before the run, as the code may change meanwhile
    name = "LIMIT" if options.limit else f"people_{options.documents}"
    folder: Path = options.work / name
    (folder / QRELS_FOLDER).mkdir(parents=True, exist_ok=True)
    asked = (
        _limit(options.limit) if options.limit else made(folder, options.documents, options.needs)
    )
    index_folder, corpus = folder / "index", (options.limit or folder) / CORPUS
    build_index([str(corpus)], index_folder, BuildOptions(overwrite=True, metadata=FIELDS))
    vectors = folder / "vectors" if BY_VECTORS.intersection(options.lines) else None
    if vectors:
        kept = EmbedOptions(vectors=vectors, unit="sentence", sentence_titles=False)
        embed_index(index_folder, options.encoder, kept, open_progress())
    measured: dict[str, Sequence[Mapping[str, float]]] = {}
    with open_index(index_folder, vectors=vectors, search_timeout_s=None) as index:
        tokens = {
            of.doc_id: count_tokens(of.title) + count_tokens(of.content) for of in index.scan()
        }
        for line in options.lines:
            say(f"{name}: {line}, {len(asked):,} needs")
            results = [index.search(LINES[line](need)).hits for need in asked]
            measured[line] = [
                values([hit.doc_id for hit in hits], need, tokens)
                for hits, need in zip(results, asked, strict=True)
            ]
        made_of = {"corpus": corpus_of(index.manifest), "seed": SEED}
    figure = figure_of(name, asked, measured, {**made_of, "encoder": vectors and options.encoder})
    show(options.json, [figure], run)
    if not options.limit:
        draw(figure, options.lines, options.json.with_suffix(".svg"))
    return 0


def made(folder: Path, documents: int, of_depth: int) -> list[Need]:
    """Make people and needs, write them as a folder of BEIR, and return the needs."""
    holders = {attribute: bytearray() for attribute in chain(*attributes().values())}
    with (folder / CORPUS).open("wb") as file:
        for made_up in map(person, range(documents)):
            file.write(orjson.dumps(made_up.document) + b"\n")
            for attribute, held in holders.items():
                held.append(made_up.has(attribute))
    drawn = needs(holders, of_depth)
    lines = [orjson.dumps({"_id": need.id, "text": need.text}) + b"\n" for need in drawn]
    (folder / QUERIES_FILE).write_bytes(b"".join(lines))
    judged = [(need.id, id, "1") for need in drawn for id in sorted(need.relevant)]
    rows = "".join("\t".join(row) + "\n" for row in (QRELS_HEAD, *judged))
    (folder / QRELS_FOLDER / "test.tsv").write_text(rows)
    return drawn


def _limit(folder: Path) -> list[Need]:
    """Read the needs of LIMIT: "Who likes Quokkas?" is known as the phrase "Quokkas"."""
    phrases = {of.text: f'"{of.text[len("Who likes ") : -1]}"' for of in load_questions(folder)}
    return [
        Need(of.id, of.text, phrases[of.text], frozenset(id for id, _ in of.relevant_documents))
        for of in load_questions(folder)
    ]
