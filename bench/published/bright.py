"""BRIGHT (Su et al., 2024, arXiv:2407.12883), long documents: questions of StackExchange.

The format follows the card of the data set ``xlangai/BRIGHT`` on the Hugging Face hub, and its own
program (run.py of xlang-ai/BRIGHT at 5ec4cb3).
``examples/DOMAIN-*.parquet`` has ``id``, ``query``, ``gold_ids_long`` and ``excluded_ids``, and
``long_documents/DOMAIN-*.parquet`` has ``id`` and ``content``. Documents that a question excludes
are left out of its ranking before it is measured. None of them is relevant; the id "N/A" means
none. The files themselves could not be read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from arag_search.questions.files import EXCLUDED, QRELS_FOLDER, QRELS_HEAD, QUERIES_FILE
from arag_search.system.durable import write_atomically
from bench.data import CORPUS_LINES
from bench.published.made import Downloaded, PublishedRow, made_set, write_lines
from index_jobs.build.options import BuildOptions

GET = (
    'hf download xlangai/BRIGHT --repo-type dataset --include "examples/*" "long_documents/*" '
    "--local-dir FOLDER"
)
DOMAINS = (
    "biology", "earth_science", "economics", "psychology", "robotics", "stackoverflow",
    "sustainable_living", "pony",
)  # fmt: skip

_NO_ID = "N/A"
_OPTIONS = BuildOptions(overwrite=True, metadata={"file": "keyword", "type": "keyword"})


def make(folder: Path, data: Path) -> Iterator[str]:
    """Make a data set of each domain that was downloaded, ``bright_biology`` and so on: a folder of
    BEIR with an index of its own.

    A document has no title. The last part of its id is its ``file``, because the folder in the id
    reveals the question for which it was collected. Raises BenchError if files are missing or a row
    is not as published, and what building an index raises.
    """
    downloaded = Downloaded(folder, GET)
    there = [domain for domain in DOMAINS if list(folder.glob(f"examples/{domain}-*.parquet"))]
    if not there:
        raise downloaded.lacking("examples/DOMAIN-*.parquet")
    for domain in there:
        made = data / f"bright_{domain}"
        documents = downloaded.rows(f"long_documents/{domain}-*.parquet")
        write_lines(made / CORPUS_LINES, map(_document, documents))
        queries, judgements = query_files(downloaded.rows(f"examples/{domain}-*.parquet"))
        write_lines(made / QUERIES_FILE, queries)
        (made / QRELS_FOLDER).mkdir(exist_ok=True)
        write_atomically(made / QRELS_FOLDER / "test.tsv", judgements.encode())
        yield made_set(made, [made / CORPUS_LINES], _OPTIONS)


def _document(row: PublishedRow) -> dict[str, Any]:
    id = _id(row, row.values.get("id"), "id")
    file = PurePosixPath(id).name or id
    ending = PurePosixPath(file).suffix.removeprefix(".").lower()
    metadata = {"file": file, **({"type": ending} if ending else {})}
    return {"_id": id, "title": "", "text": row.text("content"), "metadata": metadata}


def query_files(rows: Iterable[PublishedRow]) -> tuple[list[dict[str, Any]], str]:
    """Return the queries, and the file of judgements, of a folder of BEIR."""
    queries: list[dict[str, Any]] = []
    judgements = ["\t".join(QRELS_HEAD)]
    for row in rows:
        id = _id(row, row.values.get("id"), "id")
        relevant, excluded = (
            [_id(row, value, name) for value in row.list(name) if value != _NO_ID]
            for name in ("gold_ids_long", EXCLUDED)
        )
        for document in excluded:
            if document in relevant:
                raise row.wrong(f'Document "{document}" is relevant and excluded.')
        metadata = {"metadata": {EXCLUDED: excluded}} if excluded else {}
        queries.append({"_id": id, "text": row.text("query"), **metadata})
        judgements += [f"{id}\t{document}\t1" for document in dict.fromkeys(relevant)]
    return queries, "\n".join([*judgements, ""])


def _id(row: PublishedRow, value: object, name: str) -> str:
    """Return an id, which must fit a cell of the file of judgements."""
    id = str(value or "")
    if not id.strip() or len(id.splitlines()) > 1 or "\t" in id or id != id.strip():
        raise row.wrong(f'"{name}" is {value!r}.')
    return id
