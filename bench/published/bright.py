"""BRIGHT (Su et al., 2024, arXiv:2407.12883), long documents: questions of StackExchange.

The format is that of the data set ``xlangai/BRIGHT`` on the Hugging Face hub, as its card describes
it and as its own program reads it (run.py of xlang-ai/BRIGHT at 5ec4cb3):
``examples/DOMAIN-*.parquet`` with ``id``, ``query``, ``gold_ids_long`` and ``excluded_ids``, and
``long_documents/DOMAIN-*.parquet`` with ``id`` and ``content``. Documents that a question excludes
are left out of its ranking before it is measured, and none of them is relevant; the id "N/A" means
none. The files themselves could not be read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

import orjson

from arag_search.questions.files import EXCLUDED, QRELS_FOLDER, QRELS_HEAD, QUERIES_FILE
from arag_search.system.durable import write_atomically
from bench import BenchError
from bench.data import CORPUS_LINES
from bench.published.made import MadeSet, made_set, missing_files
from index_jobs.build.options import BuildOptions
from index_jobs.sources.converters.tables import parquet_rows

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


def make(downloaded: Path, data: Path) -> Iterator[MadeSet]:
    """Make a data set of each domain that was downloaded, ``bright_biology`` and so on: a folder of
    BEIR with an index of its own.

    A document has no title; the last part of its id is its ``file``, because the folder in the id
    reveals the question for which it was collected. Raises BenchError if files are missing or a row
    is not as published, and what building an index raises.
    """
    there = [domain for domain in DOMAINS if _parts(downloaded, "examples", domain)]
    if not there:
        raise missing_files(downloaded, "examples/DOMAIN-*.parquet", GET)
    for domain in there:
        folder = data / f"bright_{domain}"
        folder.mkdir(parents=True, exist_ok=True)
        _write_documents(folder, _rows(downloaded, "long_documents", domain))
        for name, content in query_files(_rows(downloaded, "examples", domain)).items():
            (folder / name).parent.mkdir(exist_ok=True)
            write_atomically(folder / name, content)
        yield made_set(folder, [folder / CORPUS_LINES], _OPTIONS)


def _parts(downloaded: Path, subset: str, domain: str) -> list[Path]:
    return sorted((downloaded / subset).glob(f"{domain}-*.parquet"))


def _rows(downloaded: Path, subset: str, domain: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a subset of a domain, each with its place."""
    parts = _parts(downloaded, subset, domain)
    if not parts:
        raise missing_files(downloaded, f"{subset}/{domain}-*.parquet", GET)
    for part in parts:
        for number, row in enumerate(parquet_rows(part, str(part)), 1):
            yield f"{part}, row {number}", row


def _write_documents(folder: Path, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    lines: list[bytes] = []
    for where, row in rows:
        id = _id(row.get("id"), "id", where)
        file = PurePosixPath(id).name or id
        ending = PurePosixPath(file).suffix.removeprefix(".").lower()
        metadata = {"file": file, **({"type": ending} if ending else {})}
        text = _text(row.get("content"), "content", where)
        lines.append(orjson.dumps({"_id": id, "title": "", "text": text, "metadata": metadata}))
    write_atomically(folder / CORPUS_LINES, b"\n".join([*lines, b""]))


def query_files(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, bytes]:
    """Return the files of queries and judgements of a folder of BEIR, by name."""
    queries: list[bytes] = []
    judgements = ["\t".join(QRELS_HEAD)]
    for where, row in rows:
        id = _id(row.get("id"), "id", where)
        relevant = _ids(row, "gold_ids_long", where)
        excluded = [document for document in _ids(row, EXCLUDED, where) if document != _NO_ID]
        both = sorted(set(relevant) & set(excluded))
        if both:
            raise _wrong(f'Document "{both[0]}" is relevant and excluded.', where)
        metadata = {"metadata": {EXCLUDED: excluded}} if excluded else {}
        query = {"_id": id, "text": _text(row.get("query"), "query", where), **metadata}
        queries.append(orjson.dumps(query))
        judgements += [f"{id}\t{document}\t1" for document in dict.fromkeys(relevant)]
    return {
        QUERIES_FILE: b"\n".join([*queries, b""]),
        f"{QRELS_FOLDER}/test.tsv": "\n".join([*judgements, ""]).encode(),
    }


def _ids(row: Mapping[str, Any], name: str, where: str) -> list[str]:
    value = row.get(name)
    if not isinstance(value, list):
        raise _wrong(f'"{name}" is no list.', where)
    return [_id(id, name, where) for id in cast(list[object], value)]


def _id(value: object, name: str, where: str) -> str:
    """Return an id, which must fit a cell of the file of judgements."""
    id = _text(value, name, where)
    if len(id.splitlines()) > 1 or "\t" in id or id != id.strip():
        raise _wrong(f'"{name}" is {value!r}.', where)
    return id


def _text(value: object, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(f'"{name}" is no text.', where)
    return value


def _wrong(what: str, where: str) -> BenchError:
    return BenchError(
        f"The row is not as published: {what}",
        where=where,
        allowed="rows of examples and long_documents of xlangai/BRIGHT",
        do=f"Download the files again: {GET}",
    )
