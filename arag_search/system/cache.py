"""The folder in which downloads, and what takes long to make, are kept.

Environment: ``ARAG_CACHE_DIR``, the folder; it is else ``arag_search`` in the user's caches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from arag_search.system.paths import path_in

CACHE_VARIABLE = "ARAG_CACHE_DIR"


def cache_folder() -> Path:
    """Return the folder, which may not exist."""
    if chosen := path_in(CACHE_VARIABLE):
        return Path(chosen).absolute()
    if sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        # XDG requires that a relative path is ignored.
        xdg = os.environ.get("XDG_CACHE_HOME", "")
        caches = Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache"
    return caches / "arag_search"
