"""The jars of a local node: pinned one by one in ``jars.txt``, downloaded once into the cache.

No dependencies are resolved at run time: the list has the coordinates, SHA-256 and size of every
jar, so that a machine gets exactly the files that were tested, or an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

from arag_search.engines.jars import (
    CACHE_VARIABLE,
    Download,
    PinnedJar,
    cache_folder,
    resolve,
)
from arag_search.errors import EngineError, JvmError

OPENSEARCH_VERSION = "3.8.0"
_DOWNLOADS_AT_ONCE = 8


def pinned_jars() -> list[PinnedJar]:
    """Return the jars that ``jars.txt`` lists."""
    text = (files("arag_search.engines.opensearch.nodes") / "jars.txt").read_text(encoding="ascii")
    jars: list[PinnedJar] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            coordinates, sha256, size = line.split()
            jars.append(PinnedJar(*coordinates.split(":"), sha256=sha256, size=int(size)))
    return jars


def jar_folder() -> Path:
    """Return the folder of the jars, in the cache folder."""
    return cache_folder() / f"opensearch-{OPENSEARCH_VERSION}"


def class_path(
    jars: Sequence[PinnedJar] | None = None, download: Download | None = None
) -> list[str]:
    """Return the paths of the jars. Download and verify those that are absent.

    Raises EngineError.
    """
    pinned = pinned_jars() if jars is None else jars
    folder = jar_folder()
    with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
        downloads = [pool.submit(resolve, jar, folder, download) for jar in pinned]
        try:
            return [str(path.result()) for path in downloads]
        except JvmError as error:
            pool.shutdown(cancel_futures=True)
            raise EngineError(
                error.what,
                where=error.where,
                allowed=error.allowed,
                do=f"Check the network, then try again. Without a network, copy {folder} from a "
                f"machine on which a node has been started; {CACHE_VARIABLE} moves the cache.",
            ) from error
