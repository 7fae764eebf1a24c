"""Indexes for the tests of your own programs: real ones, in a folder that ends with the process.

from arag_search.testing import index_of

index = index_of(["Vivaldi was born in Venice.", {"id": "b", "text": "A poem.", "year": 1847}])
assert [hit.id for hit in index.logical_search("year:1847").hits] == ["b.1"]
"""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from arag_search.corpus import Document
from arag_search.query.fields import RESERVED_FIELDS
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

_TYPES: dict[type[object], str] = {bool: "boolean", int: "number", float: "number"}
_numbers = itertools.count(1)


def index_of(
    documents: Iterable[str | Mapping[str, Any] | Document], options: BuildOptions | None = None
) -> Index:
    """Return the open index of some documents, which takes about 0.1 s after the first.

    A text is a document whose id is its number, from 1. Other documents are as in ``build_index``.
    Without ``options``, each further key of a mapping is a field: of numbers, booleans or, for
    other values, keywords. Raises what ``build_index`` raises.
    """
    records = [
        {"id": str(number), "text": document} if isinstance(document, str) else document
        for number, document in enumerate(documents, 1)
    ]
    if options is None:
        options = BuildOptions(metadata=_fields(records), workers=0)
    location = _folder() / f"index-{next(_numbers)}"
    build_index(records, location, options)
    return open_index(location)


def _fields(records: Iterable[Mapping[str, Any] | Document]) -> dict[str, Any]:
    mappings = [record for record in records if isinstance(record, Mapping)]
    values = dict[str, object](member for record in mappings for member in record.items())
    return {
        name: _TYPES.get(type(value), "keyword")
        for name, value in values.items()
        if name not in RESERVED_FIELDS
    }


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="arag-search-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
