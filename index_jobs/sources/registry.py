"""The registry of source formats: their names, descriptions and readers.

Detection, reading, and the options and help of the command line take the formats from here. To add
a format, add its entry and write its reader. Readers are imported when they are first needed, so
that the command line starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from index_jobs.sources.formats import RecordFormat
    from index_jobs.sources.reading import Source, SourceOpener

Format = str
"""The name of a format in ``FORMATS``."""

FILES: Format = "files"
"""The name of the format of people's own files, each of which has its own type."""

AUTO = "auto"
"""The command line's name for no given format: the format of each source is detected."""


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """One format.

    ``summary`` describes the sources, for help. ``record`` is the RecordFormat for files of
    records. ``folder`` opens a folder, and ``folder_words`` describes such a folder. ``file`` opens
    a file that does not consist of records. These three are given as ``module:object``, or left
    empty. A format that is not ``detected`` must be named. The passages of a ``pre_chunked`` format
    are not cut: their ids and order are kept.
    """

    name: Format
    summary: str
    record: str = ""
    folder: str = ""
    folder_words: str = ""
    file: str = ""
    detected: bool = True
    pre_chunked: bool = False

    def record_format(self) -> type[RecordFormat]:
        """Import the class that reads the records of this format."""
        return _imported(self.record)

    def folder_opener(self) -> SourceOpener:
        """Import the function that opens folders of this format."""
        return _imported(self.folder)

    def file_opener(self) -> Callable[..., Source]:
        """Import the function that opens files of this format: a SourceOpener that takes each."""
        return _imported(self.file)


_SOURCES = "index_jobs.sources"

_ENTRIES = (
    SourceFormat(
        FILES,
        "files of people, and folders of them; each file is a document",
        folder=f"{_SOURCES}.files:open_folder",
        folder_words="a folder of files",
        file=f"{_SOURCES}.files:open_file",
    ),
    SourceFormat(
        "text",
        "any file as plain text, and the plain text in a folder",
        folder=f"{_SOURCES}.files:open_text_folder",
        folder_words="one of plain text",
        file=f"{_SOURCES}.files:open_text_file",
        detected=False,
    ),
    SourceFormat(
        "documents",
        'JSON lines of documents {"id", "title", "text", ...}',
        record=f"{_SOURCES}.formats:Documents",
    ),
    SourceFormat(
        "pre-chunked",
        'JSON lines of passages {"id", "text", "pre_chunked": true, ...}, not cut',
        record=f"{_SOURCES}.formats:PreChunked",
        pre_chunked=True,
    ),
    SourceFormat(
        "passages",
        'JSON lines of passages {"title", "sentences": [...]}',
        record=f"{_SOURCES}.formats:Passages",
    ),
    SourceFormat(
        "arag-chunks",
        'chunk files of A-RAG ["0:text", ...]',
        record=f"{_SOURCES}.formats:AragChunks",
        pre_chunked=True,
    ),
    SourceFormat(
        "graphrag-bench",
        'files of GraphRAG-Bench [{"corpus_name", "context"}]',
        record=f"{_SOURCES}.formats:GraphragBench",
    ),
    SourceFormat(
        "kilt",
        "the knowledge source of KILT",
        record=f"{_SOURCES}.collections:Kilt",
    ),
    SourceFormat(
        "dpr",
        "passages in rows id, text, title with tabs between them",
        record=f"{_SOURCES}.collections:Dpr",
        pre_chunked=True,
    ),
    SourceFormat(
        "beir",
        "BEIR folders, or their corpus.jsonl",
        record=f"{_SOURCES}.collections:Beir",
        folder=f"{_SOURCES}.collections:open_beir",
        folder_words="one with corpus.jsonl",
    ),
    SourceFormat(
        "anserini",
        "folders of Lucene indexes that Anserini or Pyserini made with the text stored",
        folder=f"{_SOURCES}.anserini:open_lucene_index",
        folder_words="a Lucene index",
    ),
)

FORMATS: dict[Format, SourceFormat] = {entry.name: entry for entry in _ENTRIES}
"""All formats by name. If a source fits several formats, the last of them is chosen."""

PRE_CHUNKED = frozenset(entry.name for entry in _ENTRIES if entry.pre_chunked)


def folder_help() -> str:
    """List the formats that a folder may have, for messages."""
    words = [
        f"{name + f' or {AUTO}' * (name == FILES)} for {entry.folder_words}"
        for name, entry in FORMATS.items()
        if entry.folder
    ]
    return f"--format {', '.join(words)}"


def formats_help(indent: str) -> str:
    """Return an indented line for each format, for the help of a command."""
    width = max(map(len, FORMATS))
    lines = [f"{indent}  {entry.name:{width}}  {entry.summary}" for entry in _ENTRIES]
    return "\n".join(lines)


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
