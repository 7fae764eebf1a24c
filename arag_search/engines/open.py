"""Which engine a location names (a folder, or an address of OpenSearch), and opening an index to
read, build or update it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arag_search.corpus import is_unicode
from arag_search.engines.base import SearchEngine
from arag_search.engines.opensearch.address import check_no_password, is_address, parse_address
from arag_search.errors import ArgumentError

if TYPE_CHECKING:
    from arag_search.engines.write import Build, IndexUpdate, TargetOptions


class OpenEngine(NamedTuple):
    """An engine that is open for reading, with the name of its index.

    Call ``release`` after closing the engine. ``is_outdated`` returns whether another state of the
    index has been published since. It reads one small file, or asks the server, and may raise what
    opening raises.
    """

    name: str
    engine: SearchEngine
    release: Callable[[], None]
    is_outdated: Callable[[], bool]


def is_folder_of_files(location: str) -> bool:
    """Return whether a location is a folder that holds files, and neither an index nor the
    beginning of one."""
    if is_address(location) or not os.path.isdir(location):
        return False
    from arag_search.engines.lucene.location import is_index

    return not is_index(Path(location)) and bool(os.listdir(location))


def open_engine(
    location: str, ca_certs: str | None, client_cert: str | None, client_key: str | None
) -> OpenEngine:
    """Open the index at a location for reading. The three files are used for a server only.

    Raises what ``arag_search.open_index`` raises for a location.
    """
    if is_address(location):
        from arag_search.engines.opensearch.address import ConnectionOptions
        from arag_search.engines.opensearch.reader import OpenSearchEngine

        address = parse_address(location)
        options = ConnectionOptions.from_environment(ca_certs, client_cert, client_key)
        remote = OpenSearchEngine.open(address, options)
        return OpenEngine(str(address), remote, lambda: None, lambda: remote.is_outdated(address))
    check_path(location, "the index")
    from arag_search.engines.lucene.location import hold_live, published_state
    from arag_search.engines.lucene.reader import LuceneEngine

    folder = Path(location).absolute()
    before = published_state(folder)
    live = hold_live(Path(location))
    try:
        engine = LuceneEngine.open(live.path, location)
        return OpenEngine(
            location,
            engine,
            live.release,
            lambda: published_state(folder) not in (before, None),
        )
    except BaseException:
        live.release()
        raise


def open_build(
    location: str | Path, options: TargetOptions, note: Callable[[str], None] | None = None
) -> Build:
    """Return the build of an index at a location, to be entered; ``note`` reports waiting for a
    server. Raises ArgumentError for an invalid address."""
    if isinstance(location, str) and is_address(location):
        from arag_search.engines.opensearch.build import OpenSearchBuild

        return OpenSearchBuild(parse_address(location), options, note)
    from arag_search.engines.lucene.build import LuceneBuild

    return LuceneBuild(Path(location), options)


def open_update(location: str | Path, note: Callable[[str], None] | None = None) -> IndexUpdate:
    """Return the update of the index at a location, to be entered; ``note`` reports waiting for a
    server.

    Raises ArgumentError for an invalid address or path.
    """
    name = str(location)
    if isinstance(location, str) and is_address(name):
        from arag_search.engines.opensearch.update import OpenSearchUpdate

        return OpenSearchUpdate(parse_address(name), note)
    check_path(name, "the index")
    from arag_search.engines.lucene.update import LuceneUpdate

    return LuceneUpdate(Path(location))


def check_path(name: str, of_what: str) -> None:
    """Raise ArgumentError for a path that is empty, or is not UTF-8, since Java and messages need
    text. A path with a password is rejected, too: it is meant to be an address."""
    check_no_password(name)
    if not name.strip():
        raise ArgumentError(
            f"The path of {of_what} is empty.", allowed="a file or folder", do="Name it."
        )
    if not is_unicode(str(Path(name).absolute())):
        shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
        raise ArgumentError(f"The path of {of_what} is not UTF-8.", where=shown, do="Rename it.")
