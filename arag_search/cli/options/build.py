"""Options of the commands that read corpora and build indexes, each defined once."""

from __future__ import annotations

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


Ray = Annotated[
    str | None,
    typer.Option(
        help="Work on a Ray cluster, whose machines see the same folders at the same paths: auto "
        "(RAY_ADDRESS, or the one on this machine), HOST:PORT, or local, which starts one here.",
        metavar="ADDRESS",
    ),
]


class CorpusOptions(NamedTuple):
    """What is read of the sources, how it is cut, and how the index is written. Those that an index
    keeps are None if they are not given."""

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
        int | None,
        typer.Option(
            help="Most o200k tokens of a passage, 16 to 100,000.  [default: 1000]", metavar="N"
        ),
    ] = None
    bm25: Annotated[
        str | None,
        typer.Option(
            help="k1 and b of the ranking; long documents need other values. Stored in the index.  "
            "[default: 1.2,0.75]",
            metavar="K1,B",
        ),
    ] = None
    metadata: Annotated[
        str | None,
        typer.Option(
            help="Fields of the records to keep for queries, each with its type: "
            f"{', '.join(FIELD_TYPES)}. Others are ignored and counted; keys of front matter need "
            "no declaration.",
            metavar="NAME:TYPE,...",
        ),
    ] = None
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
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that chunk and pack documents, 0 to 64; 0 uses this one. "
            "[default: 0 for less than 16 MB, else cores less one, at most 4; with --ray all cores "
            "of the cluster]",
            metavar="N",
        ),
    ] = None
    ray: Ray = None
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace an existing index. It is searched until the new one is complete.",
        ),
    ] = False
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
            "addition to those whose ending is known. A name without wildcards is also read if it "
            "looks like passwords or keys. May be repeated.",
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
            "__pycache__, what .gitignore files exclude, passwords and keys, lock files of "
            "packages and minified code.",
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

    def reading(self) -> dict[str, Any]:
        """Return how sources are read, as a build and an update take it. Raises ArgumentError."""
        from index_jobs.sources.conversion import USUAL_LIMITS
        from index_jobs.sources.folders.selection import (
            MAX_FILE_BYTES,
            FileSelection,
            parse_limits,
            parse_size,
        )
        from index_jobs.sources.lines.files import Fields

        size, limits = self.max_file_size, self.file_limits
        return {
            "format": None if self.format == AUTO else str(self.format),
            "fields": Fields(id=self.id_field, title=self.title_field, text=self.text_field),
            "skip_bad_lines": self.skip_bad_lines,
            "files": FileSelection(
                include=tuple(self.include or ()),
                exclude=tuple(self.exclude or ()),
                no_ignore=self.no_ignore,
                max_bytes=MAX_FILE_BYTES if size is None else parse_size(size),
                limits=USUAL_LIMITS if limits is None else parse_limits(limits),
                root=self.root,
                skip_bad=self.skip_bad_files,
            ),
            "workers": self.workers,
        }

    def kept(self) -> dict[str, Any]:
        """Return the given ones of the options that an index keeps, of which an update may say
        nothing else. Raises ArgumentError."""
        from index_jobs.build.options import parse_bm25, parse_names
        from index_jobs.sources.metadata import parse_metadata

        given = {
            "chunk_tokens": self.chunk_tokens,
            "bm25": None if self.bm25 is None else parse_bm25(self.bm25),
            "metadata": None if self.metadata is None else parse_metadata(self.metadata),
            "without": None if self.without is None else parse_names(self.without),
            "language": self.language,
        }
        return {name: value for name, value in given.items() if value is not None}

    def build(self) -> BuildOptions:
        """Return the options of a build. Raises ArgumentError."""
        from index_jobs.build.options import BuildOptions

        options = {**self.reading(), **self.kept()}
        if "bm25" in options:
            options["k1"], options["b"] = options.pop("bm25")
        return BuildOptions(**options, shards=self.shards, ray=self.ray, overwrite=self.overwrite)
