"""The options of commands that take an index: its place, and how to open it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import typer

if TYPE_CHECKING:
    from arag_search.search.index import Index
    from arag_search.search.opening import IndexOpening

IndexFolder = Annotated[
    str,
    typer.Argument(
        help="The folder of the index, or a folder of files, whose index is kept in the cache.",
        metavar="INDEX",
    ),
]
IndexPlace = Annotated[
    str, typer.Argument(help="The folder or address of the index.", metavar="INDEX")
]
Sources = Annotated[
    list[str],
    typer.Argument(
        help="Folders and files; - is standard input.",
        metavar="SOURCE",
        default_factory=list,
        show_default=False,
    ),
]
Target = Annotated[
    str,
    typer.Option("--to", help="A folder, or http://HOST:PORT/NAME.", metavar="INDEX"),
]
SearchedIndex = Annotated[
    str | None,
    typer.Option(
        "--index",
        help="The index that was searched: evidence is then judged by the text of its "
        "passages that was visible, not by the titles shown.",
        metavar="INDEX",
    ),
]
ScopeFilter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Conditions on metadata that every passage must meet, such as 'lang:en', or JSON, "
        """such as '{"lang": ["en", "de"]}'.""",
        metavar="CONDITIONS",
    ),
]
VectorsFolder = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        help="The folder that arag-search embed wrote vectors to.  [default: ARAG_VECTORS, else "
        "vectors in the folder of the index]",
        metavar="DIR",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_SMALL_BYTES = 256 << 20
"""The size of some 150,000 passages with sentences. A larger index is worth Java's second
compiler."""
_T = TypeVar("_T")
DEFAULT_TIMEOUT_S = 10.0
"""The same as in arag_search/engines/deadline.py, which --help does not import."""


class Opening(NamedTuple):
    """The options of a command that searches an index, or the index of a folder of files. A
    ``search_timeout_s`` of 0 means no limit."""

    filter: ScopeFilter = None
    search_timeout_s: Annotated[
        float,
        typer.Option(
            help="Stop a query that takes the engine longer than this; 0 for no limit.",
            metavar="SECONDS",
        ),
    ] = DEFAULT_TIMEOUT_S
    vectors: VectorsFolder = None
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The encoder for queries, if the one that made the vectors has another name on "
            "this machine.",
            metavar="NAME",
        ),
    ] = None
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="For a folder of files: update its index first."),
    ] = False
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="For a folder of files: take one that holds all files of a user."
        ),
    ] = False

    @contextmanager
    def open(self, location: str, *, is_long: bool = False) -> Generator[Index]:
        """Open the index at a location as ``opening`` says. The index of a folder of files is built
        if there is none. Raises as ``open_index``, and what building raises. A QueryError gets a
        note if it is about a field that could have been declared."""
        from arag_search.cli.output.printing import undeclared_text
        from arag_search.query.problems import QueryError

        with (
            self.located(location, lambda place: self.opening(place, is_long).open()) as opened,
            opened as index,
        ):
            try:
                yield index
            except QueryError as error:
                if text := undeclared_text(error, index.manifest.undeclared_metadata):
                    error.add_note(text)
                raise

    def opening(self, location: str, is_long: bool = False) -> IndexOpening:
        """Return how the index at a location is opened. ``is_long`` says that it may be searched
        thousands of times."""
        from arag_search.engines.lucene.location import folder_bytes
        from arag_search.search.opening import IndexOpening

        if not is_long and folder_bytes(Path(location)) < _SMALL_BYTES:
            from arag_search.engines.lucene import jvm

            jvm.expect_little()

        return IndexOpening(
            location,
            filter=self.filter,
            vectors=self.vectors,
            encoder=self.encoder,
            search_timeout_s=self.search_timeout_s or None,
        )

    def located(self, location: str, open: Callable[[str], _T]) -> AbstractContextManager[_T]:
        """Do what ``index_jobs.updates.opening.located`` does, and show builds."""
        from arag_search.cli.output.printing import job_progress
        from index_jobs.updates.opening import located

        return located(location, open, job_progress(), fresh=self.fresh, yes=self.yes)
