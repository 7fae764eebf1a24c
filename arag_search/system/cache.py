"""The folder in which downloads, and what takes long to make, are kept.

Environment: ``ARAG_CACHE_DIR``, the folder; it is else ``arag_search`` in the user's caches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from arag_search.errors import ArgumentError
from arag_search.system.paths import path_in

CACHE_VARIABLE = "ARAG_CACHE_DIR"


def cache_folder() -> Path:
    """Return the folder, which may not exist. Raises ArgumentError if there is no home for it."""
    if chosen := path_in(CACHE_VARIABLE):
        return Path(chosen).absolute()
    try:
        home = Path.home()
    except RuntimeError as error:  # such as for a user of a container who is not in passwd
        raise ArgumentError(
            "This user has no home folder.",
            do=f"Set {CACHE_VARIABLE} to a folder that can be written.",
        ) from error
    if sys.platform == "darwin":
        caches = home / "Library" / "Caches"
    else:
        # XDG requires that a relative path is ignored.
        xdg = os.environ.get("XDG_CACHE_HOME", "")
        caches = Path(xdg) if os.path.isabs(xdg) else home / ".cache"
    return caches / "arag_search"
