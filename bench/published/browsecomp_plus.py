"""BrowseComp-Plus (Chen et al., 2025, arXiv:2508.06600): hard questions over 100,195 web pages.

The format is that of the data sets ``Tevatron/browsecomp-plus`` and ``-corpus`` on the Hugging Face
hub, as public programs that read their files show it. Questions are Parquet with ``query_id``,
``query``, ``answer``, and ``gold_docs``, ``evidence_docs`` and ``negative_docs`` of ``docid``,
``url`` and ``text``. Every string but ``query_id`` is encrypted: base64 of its UTF-8 bytes, XORed
with the SHA-256 of a canary, repeated. The corpus is Parquet with ``docid``, ``url`` and ``text``,
not encrypted. The files themselves could not be read here.

The canary is not in this repository: whoever has the data puts it into ``canary.txt``. It keeps the
questions out of training data, so the data set that is made must not be published either.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from arag_search.system.durable import write_atomically
from bench import BenchError
from bench.data import CORPUS_LINES, QUESTIONS
from bench.published.made import MadeSet, made_set, missing_files, published_file
from index_jobs.build.options import BuildOptions
from index_jobs.sources.converters.tables import parquet_rows

NAME = "browsecomp_plus"
CANARY = "canary.txt"
GET = (
    "hf download Tevatron/browsecomp-plus --repo-type dataset --local-dir FOLDER/queries, the same "
    "with Tevatron/browsecomp-plus-corpus and FOLDER/corpus; then write the canary that is "
    f"published with the questions to FOLDER/{CANARY}"
)

_PLAIN = "query_id"
_DOCUMENTS = ("gold_docs", "evidence_docs")
_TITLE = re.compile(r"\A---\n(?:.*\n)*?title:[ \t]*(.+)\n(?:.*\n)*?---\n")
_OPTIONS = BuildOptions(overwrite=True, metadata={"url": "keyword"})


def make(downloaded: Path, data: Path) -> Iterator[MadeSet]:
    """Make the data set: the index of all pages, and the questions with the ids of their documents.

    The title of a page is that of its front matter, which stays in the text. Raises BenchError if
    files are missing, the canary is another one or a row is not as published, and what building an
    index raises.
    """
    canary = published_file(downloaded, CANARY, GET).read_text("utf-8").strip()
    questions = [
        orjson.dumps(_question(decrypted(row, canary, where), where))
        for where, row in _rows(downloaded, "queries")
    ]
    folder = data / NAME
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / QUESTIONS, b"\n".join([*questions, b""]))
    corpus = folder / CORPUS_LINES
    with corpus.open("wb") as file:
        file.writelines(_page(row, where) for where, row in _rows(downloaded, "corpus"))
    yield made_set(folder, [corpus], _OPTIONS)


def decrypted(value: Any, canary: str, where: str) -> Any:
    """Return a row, or a part of one, with its strings decrypted. Raises BenchError where the
    canary, or the row, is not as published."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {
            name: item if name == _PLAIN else decrypted(item, canary, where)
            for name, item in fields.items()
        }
    if isinstance(value, list):
        return [decrypted(item, canary, where) for item in cast(list[Any], value)]
    if not isinstance(value, str):
        return value
    try:
        encrypted = base64.b64decode(value, validate=True)
        key = hashlib.sha256(canary.encode()).digest()
        repeated = key * (len(encrypted) // len(key) + 1)
        plain = bytes(byte ^ mask for byte, mask in zip(encrypted, repeated, strict=False))
        return plain.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise BenchError(
            f"The row cannot be decrypted with this canary ({type(error).__name__}).",
            where=where,
            allowed=f"rows of Tevatron/browsecomp-plus, and in {CANARY} the canary they came with",
            do=f"Check {CANARY}, or download the files again: {GET}",
        ) from error


def _rows(downloaded: Path, part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of all Parquet files of a part, each with its place."""
    files = sorted((downloaded / part).rglob("*.parquet"))
    if not files:
        raise missing_files(downloaded, f"{part}/*.parquet", GET)
    for file in files:
        for number, row in enumerate(parquet_rows(file, str(file)), 1):
            yield f"{file}, row {number}", row


def _question(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a question without the texts of its documents."""
    documents = {
        name: [{"docid": _text(page, "docid", where)} for page in _documents(row, name, where)]
        for name in _DOCUMENTS
    }
    return {
        _PLAIN: _text(row, _PLAIN, where),
        **{name: _text(row, name, where) for name in ("query", "answer")},
        **documents,
    }


def _documents(row: Mapping[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    documents = row.get(name)
    if not isinstance(documents, list):
        raise _wrong(name, "list", where)
    return cast(list[dict[str, Any]], documents)


def _page(row: Mapping[str, Any], where: str) -> bytes:
    text = _text(row, "text", where)
    title = _TITLE.match(text)
    page = {
        "_id": _text(row, "docid", where),
        "title": title[1].strip().strip("\"'") if title else "",
        "text": text,
        "metadata": {"url": row["url"]} if row.get("url") else {},
    }
    return orjson.dumps(page, option=orjson.OPT_APPEND_NEWLINE)


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str | int) or not str(value).strip():
        raise _wrong(name, "text", where)
    return str(value)


def _wrong(name: str, kind: str, where: str) -> BenchError:
    return BenchError(
        f'The row is not as published: "{name}" is no {kind}.',
        where=where,
        allowed="rows of Tevatron/browsecomp-plus and of its corpus",
        do=f"Download the files again: {GET}",
    )
