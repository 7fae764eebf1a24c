"""Opening an index by its location, or a folder of files by its index in the cache."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from arag_search.engines.open import is_folder_of_files
from arag_search.errors import AragError, ArgumentError, on_one_line
from arag_search.search.index import Index
from arag_search.search.opening import FilesOpening
from arag_search.system.arguments import made_of
from arag_search.system.progress import Progress

if TYPE_CHECKING:
    from index_jobs.updates.folder_index import FolderIndex

_T = TypeVar("_T")


@made_of(FilesOpening)
def open_index(opening: FilesOpening) -> Index:
    """Open the index in a folder, at the address of a server (``https://host:9200/name``), or of a
    folder of files.

    The index of a folder of files is kept in the user's cache. It is built if there is none, and
    otherwise compared with the files: few and small changes are read first, and with ``fresh`` all.
    An index that is damaged or of another version is built again. ``progress`` shows builds
    (default: nothing). A folder that holds all files of a user is taken only with ``yes``.

    ``filter`` is data (``{"lang": ["en", "de"], "year": {"gte": 2000}, "not": {"draft": True}}``)
    or a query of metadata clauses (``lang:en AND year:>=2000``, NOTs alone allowed) that every
    search, count and read obeys. For a server, user and password are taken from
    ``OPENSEARCH_USERNAME`` and ``OPENSEARCH_PASSWORD``. ``ca_certs`` is a file of trusted
    authorities (default: ``OPENSEARCH_CA_CERTS``, else the usual ones). ``client_cert`` and
    ``client_key`` are files for a server that asks for a certificate (default:
    ``OPENSEARCH_CLIENT_CERT`` and ``OPENSEARCH_CLIENT_KEY``).

    ``vectors`` is the folder that ``arag-search embed`` wrote to (default: ``ARAG_VECTORS``, else
    ``vectors`` in the folder of the index). If it is named, the vectors are opened and compared
    with the index at once, otherwise by the first search that needs them. ``encoder`` is an open
    encoder or a name (default: the encoder that made the vectors). ``nprobe`` is the number of
    lists that a search of approximate vectors probes (default: as the vectors say). A query that
    takes the engine longer than ``search_timeout_s`` seconds is stopped with QueryTimeoutError;
    None is no limit.

    An open index stays as it was when it was opened. With ``refresh`` "auto" it follows builds and
    updates, on a server within a second. Every call is then answered from one state of the index,
    the newest. Further pages of a result (``offset``, ``after``) come from the state of its first.

    Raises IndexNotFoundError, IndexVersionError, IndexDamagedError, JvmError, VectorsError, and
    QueryError for the filter. A server adds ArgumentError, AccessError, UnavailableError and
    EngineError. A folder of files adds ArgumentError and what building raises.
    """

    def opened(location: str) -> Index:
        return replace(opening, location=location).opened()

    progress, fresh, yes = opening.progress or Progress(), opening.fresh, opening.yes
    place = located(opening.location, opened, progress, fresh=fresh, yes=yes)
    index = place.__enter__()
    index.held.push(place)
    return index


@contextmanager
def located(
    location: str | Path,
    open: Callable[[str], _T],
    progress: Progress,
    *,
    fresh: bool = False,
    yes: bool = False,
) -> Generator[_T]:
    """Yield what ``open`` opens at the location of an index. For a folder of files this is the
    location of its index. That index is built if there is none or it cannot be used, and with
    ``fresh`` it is updated. Errors of its use name the folder. Raises what opening and building
    raise, and as ``folder_of``."""
    folder = folder_of(str(location), fresh=fresh, yes=yes)
    if folder is None:
        yield open(str(location))
        return
    from index_jobs.updates.folder_index import KeptIndex

    with folder.held():
        kept = KeptIndex(folder, progress)
        opened = kept.opened(open, partial(kept.bring_in_step, fresh=fresh))
        try:
            yield opened
        except AragError as error:
            if kept.withdraw(error, folder.state):
                error.do = "Run the same command again: it builds the index again first."
            if error.where == str(folder.location):
                error.where = on_one_line(str(location))
            raise


def folder_of(location: str, *, fresh: bool, yes: bool) -> FolderIndex | None:
    """Return the index of a folder of files; None for another location. Raises ArgumentError for a
    folder with everything of a user, unless ``yes``, and for ``fresh`` with an index."""
    if is_folder_of_files(location):
        from index_jobs.updates.folder_index import FolderIndex

        folder = FolderIndex.of(location)
        if not yes:
            folder.check_discreet()
        return folder
    if fresh:
        raise ArgumentError(
            "`fresh` is given for an index.",
            where=location,
            allowed="`fresh` with a folder of files, whose index is kept in the cache",
            do="Update it: arag-search sync INDEX",
        )
    return None
