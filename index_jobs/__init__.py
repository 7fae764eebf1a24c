"""Corpora to chunks to indexes: read as a stream, cut, counted and written, resumable.

    import index_jobs

    index_jobs.build_index(["notes"], "my-index")
    report = index_jobs.sync(["notes"], "my-index")
    print(report.added, report.deleted)

    records = ({"id": row.id, "title": row.subject, "text": row.body} for row in rows)
    index_jobs.add(records, to="my-index", source="tickets")  # which sync leaves alone
    index_jobs.delete("my-index", ["ticket-17"])

``build_index``, ``add``, ``sync``, ``delete`` and ``embed`` do what the commands of the same names
do. Each takes a ``progress``: ``Progress(callback)`` calls a function with each event. Names are
loaded when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arag_search.system.progress import CallbackProgress as Progress
    from arag_search.system.progress import ProgressEvent
    from index_jobs.build.new_index import build_index
    from index_jobs.build.options import BuildOptions
    from index_jobs.embedding.job import embed_index as embed
    from index_jobs.embedding.options import EmbedOptions
    from index_jobs.updates.addition import add_documents as add
    from index_jobs.updates.deletion import delete_documents as delete
    from index_jobs.updates.options import AddOptions, SyncOptions
    from index_jobs.updates.synchronisation import sync_documents as sync

__all__ = [
    "AddOptions",
    "BuildOptions",
    "EmbedOptions",
    "Progress",
    "ProgressEvent",
    "SyncOptions",
    "add",
    "build_index",
    "delete",
    "embed",
    "sync",
]

_HOMES = {
    "AddOptions": "index_jobs.updates.options:AddOptions",
    "BuildOptions": "index_jobs.build.options:BuildOptions",
    "EmbedOptions": "index_jobs.embedding.options:EmbedOptions",
    "Progress": "arag_search.system.progress:CallbackProgress",
    "ProgressEvent": "arag_search.system.progress:ProgressEvent",
    "SyncOptions": "index_jobs.updates.options:SyncOptions",
    "add": "index_jobs.updates.addition:add_documents",
    "build_index": "index_jobs.build.new_index:build_index",
    "delete": "index_jobs.updates.deletion:delete_documents",
    "embed": "index_jobs.embedding.job:embed_index",
    "sync": "index_jobs.updates.synchronisation:sync_documents",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
