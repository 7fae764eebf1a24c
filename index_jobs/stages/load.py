"""The ``load`` stage: building, from a folder of chunks, the same index as a build in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arag_search.errors import BadFileError, DuplicateIdError, SourceError
from arag_search.query.fields import MetadataType
from arag_search.system.progress import Progress
from index_jobs.build.new_index import build_from
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildReport
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.reading import Entry, Source
from index_jobs.sources.records import CorpusFile, readable
from index_jobs.sources.registry import FILE_FORMATS, Format
from index_jobs.stages.chunk_folder import ChunkFolder, ShardRecord, verified
from index_jobs.stages.chunk_lines import ready_documents


def load_chunks(
    path: Path, location: str | Path, options: BuildOptions, progress: Progress | None = None
) -> BuildReport:
    """Build an index from a folder of chunks.

    The options for reading and cutting come from the folder; ``options`` gives the others. The
    index equals the one that ``build_index`` builds from the same sources, and is resumed and
    published in the same way. Raises what ``build_index`` raises, and SourceError if a source is
    not cut completely, a file is damaged, or two sources share an id (unless bad lines are skipped
    in this stage or were in the chunk stage).
    """
    shown = progress or Progress()
    folder = ChunkFolder(path)
    manifest = folder.manifest()
    metadata: dict[str, MetadataType] = dict(manifest.options["--metadata"])
    options = replace(
        options,
        format=manifest.format,
        fields=manifest.fields,
        chunk_tokens=manifest.options["--chunk-tokens"],
        metadata=metadata,
        skip_bad_lines=options.skip_bad_lines or manifest.skips_bad_lines,
        files=manifest.files,
    )

    def open_all(metadata: MetadataReader) -> list[Source]:
        return [
            ReadySource(folder, number, record, metadata)
            for number, record in enumerate(verified(folder, shown.note))
        ]

    try:
        return build_from(open_all, location, options, shown)
    except DuplicateIdError as error:
        error.name_first(_first_place(folder, error.doc_id))
        raise


def _first_place(folder: ChunkFolder, doc_id: str) -> str:
    for number in range(len(folder.manifest().sources)):
        path = folder.chunks(number)
        with CorpusFile(path, str(path)) as file:
            for _, document in ready_documents(file):
                if document.id == doc_id:
                    return document.where
    return str(folder.path)


class ReadySource:
    """A source that is already cut: its documents have their chunks. See Source.

    After the documents, it yields the bad records that were skipped when it was cut, and counts the
    undeclared metadata found then, so that the reports and the manifest include both.
    """

    recognised = False
    damaged: Sequence[str] = ()

    def __init__(
        self, folder: ChunkFolder, number: int, record: ShardRecord, metadata: MetadataReader
    ) -> None:
        self.name = record.name
        self.format: Format = record.format
        self.size = record.bytes
        self.left_out: Mapping[str, int] = record.left_out
        self.large_files: Sequence[str] = record.large_files
        self._path = folder.chunks(number)
        self._record = record
        self._metadata = metadata
        self._file: CorpusFile | None = None
        if record.format in FILE_FORMATS:
            metadata.expect_files()

    @property
    def bytes_read(self) -> int:
        return self._file.bytes_read if self._file else 0

    def signature(self) -> dict[str, Any]:
        with readable(str(self._path)):
            modified = self._path.stat().st_mtime_ns
        source = os.path.abspath(self.name)
        return {"source": source, "sha256": self._record.sha256, "modified": modified}

    def where_of(self, doc_id: str) -> str:
        return ""

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        state = self._record.state
        with CorpusFile(self._path, str(self._path)) as file:
            self._file = file
            yield from ready_documents(file, skip)
        number = state.documents
        for bad in range(state.skipped):
            number += 1
            if number > skip:
                yield number, _skipped(SourceError, state.skipped_examples, bad)
        for bad in range(state.skipped_files):
            number += 1
            if number > skip:
                yield number, _skipped(BadFileError, state.skipped_file_examples, bad)
        self._metadata.take(state.undeclared, state.seen)


def _skipped(kind: type[SourceError], examples: Sequence[str], at: int) -> SourceError:
    """Return the error of a skipped record or file again; it is empty beyond the examples."""
    where, _, what = (examples[at] if at < len(examples) else ": ").partition(": ")
    return kind(what, where=where)
