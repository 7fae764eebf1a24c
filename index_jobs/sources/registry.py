"""The registry of source formats: their names, descriptions and readers.

Detection, reading, and the options and help of the command line take the formats from here. To add
a format, add its entry and write its reader.
"""

from __future__ import annotations

from dataclasses import dataclass

from index_jobs.sources.lines.collections import Beir, Dpr, Kilt
from index_jobs.sources.lines.formats import (
    AragChunks,
    Documents,
    GraphragBench,
    Passages,
    PreChunked,
    RecordFormat,
)

Format = str
"""The name of a format in ``FORMATS``."""

FILES: Format = "files"
"""The name of the format of people's own files, each of which has its own type."""

TEXT: Format = "text"
DOCUMENTS: Format = "documents"
BEIR: Format = "beir"
ANSERINI: Format = "anserini"


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """One format.

    ``summary`` describes the sources, for help. ``record`` reads the records of files. ``folder``
    describes folders of this format, if there are such; ``opening.py`` opens them.
    """

    name: Format
    summary: str
    record: type[RecordFormat] | None = None
    folder: str = ""


_ENTRIES = (
    SourceFormat(
        FILES,
        "folders with all subfolders, and single files",
        folder="a folder of files",
    ),
    SourceFormat(
        TEXT,
        "any file, or the text files in a folder, as plain text",
        folder="one of plain text",
    ),
    SourceFormat(DOCUMENTS, 'JSON lines {"id", "title", "text", ...metadata}', Documents),
    SourceFormat(
        "pre-chunked",
        'the same with "pre_chunked": true: passages that are not cut further',
        PreChunked,
    ),
    SourceFormat("passages", 'JSON lines {"title", "sentences": [...]}, as in HotpotQA', Passages),
    SourceFormat("arag-chunks", 'A-RAG\'s chunk files: ["0:text", ...]', AragChunks),
    SourceFormat(
        "graphrag-bench",
        'corpora of GraphRAG-Bench: [{"corpus_name", "context"}]',
        GraphragBench,
    ),
    SourceFormat("kilt", "KILT's knowledge source; add --metadata categories:keyword", Kilt),
    SourceFormat("dpr", "rows id, text, title with tabs; other columns are metadata", Dpr),
    SourceFormat(
        BEIR,
        "a BEIR folder, or its corpus.jsonl; queries and judgements are not read",
        Beir,
        folder="one with corpus.jsonl",
    ),
    SourceFormat(
        ANSERINI,
        "a Lucene index (9, 10) by Anserini or Pyserini with --storeRaw or --storeContents",
        folder="a Lucene index",
    ),
)

FORMATS: dict[Format, SourceFormat] = {entry.name: entry for entry in _ENTRIES}
"""All formats by name. If a record fits several formats, the last of them is chosen."""

RECORDS = {entry.name: entry.record for entry in _ENTRIES if entry.record}
"""The readers of records, by the names of their formats."""

PRE_CHUNKED = frozenset(name for name, record in RECORDS.items() if record.whole)
"""The formats whose passages are not cut: their ids and order are kept."""


def folder_help() -> str:
    """List the formats that a folder may have, for messages."""
    words = [f"{name} for {entry.folder}" for name, entry in FORMATS.items() if entry.folder]
    return f"`format`: {', '.join(words)}"


def formats_help(indent: str) -> str:
    """Return an indented line for each format, for the help of a command."""
    width = max(map(len, FORMATS))
    lines = [f"{indent}  {entry.name:{width}}  {entry.summary}" for entry in _ENTRIES]
    return "\n".join(lines)
