"""What a file of records is, by its beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from arag_search.errors import SourceError
from index_jobs.sources.arrays import array_records
from index_jobs.sources.folder import leads_out
from index_jobs.sources.formats import FORMATS, Fields, Format
from index_jobs.sources.records import CorpusFile, line_records
from index_jobs.sources.rows import USUAL_COLUMNS, header_of

Layout = Literal["lines", "array", "rows"]
"""How records lie in a file: JSON lines, a JSON array, or rows with tabs between columns."""

_LOOKED_AT = 1 << 16
_KINDS = "one JSON object a line, or a JSON array"
_BEIR_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")


@dataclass(frozen=True, slots=True)
class Look:
    """What a file is. ``columns`` of rows are given where the first line does not name them."""

    layout: Layout
    format: Format
    columns: Sequence[str] | None = None


def look_at(file: CorpusFile, format: Format | None, fields: Fields) -> Look:
    """What a file is; ``format`` None is recognised by the first record.

    Raises SourceError for a file that cannot be read, or not in this format.
    """
    wanted = (fields.id or "id", fields.text or "text")
    header = header_of(file, wanted)
    if format == "dpr" or (format is None and header):
        return Look("rows", "dpr", None if header else _columns(file, fields))
    is_array, record = _beginning(file)
    found = format or recognise(record, file.name, fields)
    if found == "arag-chunks" and not is_array:
        raise SourceError(
            "The file is not a JSON array.",
            where=file.name,
            allowed='for --format arag-chunks: ["0:text", "1:text", ...]',
            do="Say --format documents or passages for JSON lines.",
        )
    return Look("array" if is_array else "lines", found)


def _columns(file: CorpusFile, fields: Fields) -> Sequence[str]:
    """The columns of rows without a header. Raises SourceError where they cannot be told."""
    first = file.first_bytes(_LOOKED_AT)
    names = ", ".join((fields.id or "id", fields.text or "text"))
    line = first.partition(b"\n")[0]
    if not first.strip():
        raise SourceError("The file is empty.", where=file.name)
    if line.count(b"\t") == len(USUAL_COLUMNS) - 1 and fields == Fields():
        return USUAL_COLUMNS
    raise SourceError(
        f"The first line does not name the columns {names}.",
        where=f"{file.name}, line 1",
        allowed=f"{', '.join(USUAL_COLUMNS)} with tabs between them, or three columns in this"
        " order without names",
        do="Name other columns with --id-field, --text-field and --title-field.",
    )


def _beginning(file: CorpusFile) -> tuple[bool, Any]:
    """Whether the file is an array, and its first record that can be read (None without one).

    Raises SourceError where the file begins with neither of ``[`` and ``{``.
    """
    first = file.first_bytes(_LOOKED_AT).lstrip()
    if first.startswith(b"["):
        for number, item in array_records(file, 0, lambda _: None):
            if not isinstance(item, SourceError):
                return True, item
            if number >= 100:
                raise _unlike(item, file.name)
        return True, None
    if not first.startswith(b"{"):
        shown = " ".join(first[:20].decode("utf-8", "replace").split())
        raise SourceError(
            f'The format is not recognised: the file begins with "{shown}".'
            if shown
            else "The file is empty.",
            where=file.name,
            allowed="a folder or file of .txt and .md, JSON lines, a JSON array, or rows with tabs"
            " and a header (id, text, title); with gzip too",
            do="For a text file with another ending say --format text.",
        )
    problem: SourceError | None = None
    for number, record in line_records(file, 0):
        if not isinstance(record, SourceError):
            return False, record
        problem = problem or record
        if number >= 100:
            break
    raise _unlike(problem, file.name)


def _unlike(problem: SourceError | None, name: str) -> SourceError:
    """The error for a file none of whose first records is one."""
    return SourceError(
        problem.what if problem else "The file is empty.",
        where=problem.where if problem else name,
        allowed=_KINDS,
        do="Write each record on one line, or name the format with --format.",
    )


def recognise(record: Any, name: str, fields: Fields) -> Format:
    """The format of a file with this first record. Raises SourceError where it is none."""
    if isinstance(record, str):
        return "arag-chunks"
    if isinstance(record, dict):
        return _of_object(cast("dict[str, Any]", record), name, fields)
    what = "the array is empty" if record is None else "its items are neither strings nor objects"
    raise SourceError(
        f"The format is not recognised: {what}.",
        where=name,
        allowed="a JSON array of chunks or of objects",
        do=f"Name the format with --format {'|'.join(FORMATS)}.",
    )


def _of_object(record: dict[str, Any], name: str, fields: Fields) -> Format:
    text = record.get(fields.text or "text")
    if isinstance(text, str):
        is_beir = fields.id is None and "_id" in record and "id" not in record
        return "beir" if is_beir else "documents"
    if isinstance(text, list) and {"wikipedia_id", "wikipedia_title"} <= record.keys():
        return "kilt"
    if isinstance(record.get(fields.text or "sentences"), list):
        return "passages"
    if not fields.text and "corpus_name" in record and isinstance(record.get("context"), str):
        return "graphrag-bench"
    wanted = f'no "{fields.text}"' if fields.text else 'neither "text" nor "sentences"'
    raise SourceError(
        f"The format is not recognised: the first record has {wanted}.",
        where=name,
        allowed=f"one of the fields there are: {', '.join(record) or 'none'}",
        do="Name the field of the text with --text-field, and the format with --format "
        f"{'|'.join(FORMATS)}.",
    )


# Folders


def beir_corpus(name: str, folder: Path) -> str | None:
    """The corpus file of a BEIR folder, or None. Raises SourceError where there are two,
    and for a link that leads out of the folder."""
    found = [each for each in _BEIR_NAMES if (folder / each).is_file()]
    if len(found) > 1:
        raise SourceError(
            f"There are both {found[0]} and {found[1]}.",
            where=name,
            do="Give the one that is meant as the source.",
        )
    if not found:
        return None
    if leads_out(folder / found[0], folder):
        raise SourceError(
            f"{found[0]} is a link that leads out of the folder.",
            where=name,
            do="Give the file that it leads to as the source.",
        )
    return f"{name.rstrip('/')}/{found[0]}"


def is_beir(corpus: str) -> bool:
    """Whether the first record of this file has an ``_id``, a title and a text of BEIR."""
    with CorpusFile(Path(corpus), corpus) as file:
        if not file.first_bytes(_LOOKED_AT).lstrip().startswith(b"{"):
            return False
        for number, record in line_records(file, 0):
            if isinstance(record, dict):
                return {"_id", "text"} <= cast("dict[str, Any]", record).keys()
            if number >= 100:
                break
    return False
