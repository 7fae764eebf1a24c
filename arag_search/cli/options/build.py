"""Options of the commands that read corpora and build indexes, each defined once."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from arag_search.query.field_types import FIELD_TYPES
from index_jobs.sources.registry import AUTO, FORMATS

if TYPE_CHECKING:
    from index_jobs.build.options import BuildOptions

    FormatName = str
else:
    FormatName = StrEnum("FormatName", {name: name for name in (AUTO, *FORMATS)})


Sources = Annotated[
    list[str],
    typer.Argument(
        help="Folders and files of the corpus; - is standard input.",
        metavar="SOURCE",
        default_factory=list,
        show_default=False,
    ),
]

Target = Annotated[
    str,
    typer.Option(
        "--to",
        help="The folder of the index, or its address on OpenSearch: http://HOST:PORT/NAME.",
        metavar="INDEX",
    ),
]

FoldCharacters = Annotated[
    int | None,
    typer.Option(
        help="Where the lines of documents are numbered (search, find, open of models), longer "
        "lines are folded; 0 folds none. Stored in the index.  [default: 200]",
        metavar="N",
    ),
]

Bm25 = Annotated[
    str,
    typer.Option(
        help="k1 and b of the ranking; long documents need other values. Stored in the index.",
        metavar="K1,B",
    ),
]

MetadataOption = Annotated[
    str | None,
    typer.Option(
        help="Fields of the records to keep for queries, each with its type: "
        f"{', '.join(FIELD_TYPES)}. Others are ignored and counted; keys of front matter need no "
        "declaration.",
        metavar="NAME:TYPE,...",
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(
        help="Processes that chunk and pack documents, 0 to 64; 0 uses this one. "
        "[default: 0 for less than 16 MB, else cores less one, at most 4; with --ray all cores of "
        "the cluster]",
        metavar="N",
    ),
]

Ray = Annotated[
    str | None,
    typer.Option(
        help="Work on a Ray cluster, whose machines see the same folders at the same paths: auto "
        "(RAY_ADDRESS, or the one on this machine), HOST:PORT, or local, which starts one here.",
        metavar="ADDRESS",
    ),
]


class ReadingOptions(NamedTuple):
    """How sources are read, and their documents cut."""

    format: Annotated[
        FormatName,
        typer.Option(
            help="The format of the sources; auto detects and reports that of each source."
        ),
    ] = AUTO
    id_field: Annotated[
        str | None,
        typer.Option(
            help="Field of the document id.  [default: id, else made of file name and line]",
            metavar="NAME",
        ),
    ] = None
    title_field: Annotated[
        str | None, typer.Option(help="Field of the title.  [default: title]", metavar="NAME")
    ] = None
    text_field: Annotated[
        str | None,
        typer.Option(
            help="Field of the text.  [default: text, for passages sentences]", metavar="NAME"
        ),
    ] = None
    chunk_tokens: Annotated[
        int, typer.Option(help="Most o200k tokens of a passage, 16 to 100,000.", metavar="N")
    ] = 1000


class StoringOptions(NamedTuple):
    """How an index is written."""

    without: Annotated[
        str | None,
        typer.Option(
            help="What to leave out: sentences makes a smaller index without --granularity "
            "sentence; forms one whose words match only as they are written; exact one without "
            "keyword search, on OpenSearch only.",
            metavar="sentences,forms,exact",
        ),
    ] = None
    language: Annotated[
        str,
        typer.Option(
            help="The language of the texts, whose words match their forms (film, films): en, de, "
            "... for one of about 50; auto detects it; none matches only letters with and without "
            "accents.",
            metavar="LANGUAGE",
        ),
    ] = "auto"
    shards: Annotated[
        int | None,
        typer.Option(
            help="Shards of an index on OpenSearch, 1 to 1,024.  [default: 1]", metavar="N"
        ),
    ] = None
    workers: Workers = None
    ray: Ray = None
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace an existing index. It is searched until the new one is complete.",
        ),
    ] = False


class SelectionOptions(NamedTuple):
    """Which records and files of the sources are read."""

    skip_bad_lines: Annotated[
        bool,
        typer.Option(
            "--skip-bad-lines",
            help="Count records that cannot be read, and leave out values that do not fit their "
            "field, instead of stopping.",
        ),
    ] = False
    skip_bad_files: Annotated[
        bool,
        typer.Option(
            "--skip-bad-files",
            help="Name and count files that cannot be read, instead of stopping; nothing of them "
            "is indexed.",
        ),
    ] = False
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            help="Read files of this name or path as text, such as '*.py' or 'src/**/*.sql', in "
            "addition to those whose ending is known. May be repeated.",
            metavar="PATTERN",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            help="Leave out files and folders of this name or path, such as '*.min.html' or "
            "'_sources/'. May be repeated.",
            metavar="PATTERN",
        ),
    ] = None
    no_ignore: Annotated[
        bool,
        typer.Option(
            "--no-ignore",
            help="Read what folders leave out otherwise: hidden entries, node_modules, "
            "__pycache__, and what .gitignore files exclude.",
        ),
    ] = False
    max_file_size: Annotated[
        str | None,
        typer.Option(
            "--max-file-size",
            help="Leave larger files of folders out: 200MB, 1.5GB, or none.  [default: 50MB]",
            metavar="SIZE",
        ),
    ] = None
    file_limits: Annotated[
        str | None,
        typer.Option(
            "--file-limits",
            help="What the conversion of a file such as a PDF may take: seconds and memory. A file "
            "that needs more cannot be read.  [default: 60,1GiB]",
            metavar="SECONDS,SIZE",
        ),
    ] = None
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            help="The folder that ids of files are relative to.  [default: the one that all "
            "sources have in common]",
            metavar="DIR",
        ),
    ] = None


def build_options(
    *,
    format: str = AUTO,
    id_field: str | None = None,
    title_field: str | None = None,
    text_field: str | None = None,
    chunk_tokens: int | None = None,
    fold_characters: int | None = None,
    bm25: str | None = None,
    metadata: str | None = None,
    without: str | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    no_ignore: bool = False,
    max_file_size: str | None = None,
    file_limits: str | None = None,
    root: str | None = None,
    skip_bad_files: bool = False,
    **others: Any,
) -> BuildOptions:
    """Convert the options to those of a build; ``others`` have the same names in BuildOptions.
    Raises ArgumentError."""
    from index_jobs.build.options import BuildOptions, parse_bm25, parse_names
    from index_jobs.sources.conversion import USUAL_LIMITS
    from index_jobs.sources.metadata import parse_metadata
    from index_jobs.sources.records import Fields
    from index_jobs.sources.selection import (
        MAX_FILE_BYTES,
        FileSelection,
        parse_limits,
        parse_size,
    )

    if bm25 is not None:
        others["k1"], others["b"] = parse_bm25(bm25)
    if chunk_tokens is not None:
        others["chunk_tokens"] = chunk_tokens
    if fold_characters is not None:
        others["fold_characters"] = fold_characters
    return BuildOptions(
        format=None if format == AUTO else str(format),
        fields=Fields(id=id_field, title=title_field, text=text_field),
        metadata=parse_metadata(metadata) if metadata is not None else {},
        without=parse_names(without) if without is not None else (),
        files=FileSelection(
            include=tuple(include or ()),
            exclude=tuple(exclude or ()),
            no_ignore=no_ignore,
            max_bytes=MAX_FILE_BYTES if max_file_size is None else parse_size(max_file_size),
            limits=USUAL_LIMITS if file_limits is None else parse_limits(file_limits),
            root=root,
            skip_bad=skip_bad_files,
        ),
        **others,
    )
