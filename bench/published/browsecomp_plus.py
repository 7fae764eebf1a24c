"""BrowseComp-Plus (Chen et al., 2025, arXiv:2508.06600): hard questions over 100,195 web pages.

The format is as in the data sets ``Tevatron/browsecomp-plus`` and ``-corpus`` on the Hugging Face
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
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson

from bench.data import CORPUS_LINES, QUESTIONS
from bench.published.made import Downloaded, PublishedRow, made_set, write_lines
from index_jobs.build.options import BuildOptions

NAME = "browsecomp_plus"
CANARY = "canary.txt"
GET = (
    "hf download Tevatron/browsecomp-plus --repo-type dataset --local-dir FOLDER/queries, the same "
    "with Tevatron/browsecomp-plus-corpus and FOLDER/corpus; then write the canary that is "
    f"published with the questions to FOLDER/{CANARY}"
)

_PLAIN = "query_id"
_TITLE = re.compile(r"\A---\n(?:.*\n)*?title:[ \t]*(.+)\n(?:.*\n)*?---\n")
_OPTIONS = BuildOptions(overwrite=True, metadata={"url": "keyword"})


def make(folder: Path, data: Path) -> Iterator[str]:
    """Make the data set: the index of all pages, and the questions with the ids of their documents.

    The title of a page is the title of its front matter, which stays in the text. Raises BenchError
    if files are missing, the canary is another one or a row is not as published, and what building
    an index raises.
    """
    downloaded = Downloaded(folder, GET)
    key = hashlib.sha256(downloaded.file(CANARY).read_text("utf-8").strip().encode()).digest()
    questions = [_question(row, key) for row in downloaded.rows("queries/**/*.parquet")]
    made = data / NAME
    write_lines(made / QUESTIONS, questions)
    with (made / CORPUS_LINES).open("wb") as file:
        file.writelines(map(_page, downloaded.rows("corpus/**/*.parquet")))
    yield made_set(made, [made / CORPUS_LINES], _OPTIONS)


def decrypted(value: Any, key: bytes) -> Any:
    """Return a row, or a part of one, with its strings decrypted. Raises binascii.Error or
    UnicodeDecodeError where the key, or the row, is not as published."""
    if isinstance(value, dict):
        return {
            name: item if name == _PLAIN else decrypted(item, key) for name, item in value.items()
        }
    if isinstance(value, list):
        return [decrypted(item, key) for item in value]
    if not isinstance(value, str):
        return value
    masked = zip(base64.b64decode(value, validate=True), cycle(key), strict=False)
    return bytes(byte ^ mask for byte, mask in masked).decode("utf-8")


def _question(row: PublishedRow, key: bytes) -> dict[str, Any]:
    """Return a question without the texts of its documents."""
    try:
        plain = replace(row, values=decrypted(row.values, key))
    except (binascii.Error, UnicodeDecodeError) as error:
        what = f"it cannot be decrypted with this canary ({type(error).__name__})."
        raise row.wrong(what, f"Check {CANARY}, or download the files again") from error
    documents = {
        name: [{"docid": replace(plain, values=page).text("docid")} for page in plain.list(name)]
        for name in ("gold_docs", "evidence_docs")
    }
    return {**{name: plain.text(name) for name in (_PLAIN, "query", "answer")}, **documents}


def _page(row: PublishedRow) -> bytes:
    text, url = row.text("text"), row.values.get("url")
    title = _TITLE.match(text)
    page = {
        "_id": row.text("docid"),
        "title": title[1].strip().strip("\"'") if title else "",
        "text": text,
        "metadata": {"url": url} if url else {},
    }
    return orjson.dumps(page, option=orjson.OPT_APPEND_NEWLINE)
