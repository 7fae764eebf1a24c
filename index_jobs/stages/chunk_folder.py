"""A folder of chunks: sources that are cut, to be loaded later.

``manifest.json`` holds the options for cutting and the names of all sources. It is the same on
every machine that cuts a share of them, so that the folders can be joined by copying. Source 7, for
example, has the files ``00007.jsonl.gz`` (its documents, see ``chunk_lines``; ``.new`` is appended
to the name until it is complete) and ``00007.json`` (the record of its progress). The file ``lock``
has a byte for each source, locked by the process that cuts the source.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

from arag_search.errors import ArgumentError, IndexLockedError, SourceError
from arag_search.system.durable import sync, write_atomically
from arag_search.system.lock import try_lock_byte
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildState
from index_jobs.cutting.chunking import Packed
from index_jobs.sources.formats import Fields
from index_jobs.sources.reading import SHOWN_EXAMPLES, Position, SeenIds
from index_jobs.sources.records import CorpusFile, readable
from index_jobs.sources.registry import FORMATS, Format
from index_jobs.sources.selection import FileSelection
from index_jobs.stages.chunk_lines import ready_documents

FOLDER_FORMAT = "arag-chunks-folder"
FOLDER_VERSION = 2

_MANIFEST = "manifest.json"
_SKIP_BAD_FILES = "--skip-bad-files"
_NOT_OF_CUTTING = ("--bm25", "--without", "--shards", "--fold-characters")


@dataclass(frozen=True, slots=True)
class FolderManifest:
    """The options with which sources are cut, and the names of the sources. The place of a name in
    the list is the number of the source."""

    options: Mapping[str, Any]
    sources: tuple[str, ...]

    @property
    def format(self) -> Format | None:
        content = self.options["--format"]
        return content if content in FORMATS else None

    @property
    def fields(self) -> Fields:
        return Fields(*(self.options[f"--{name}-field"] for name in ("id", "title", "text")))

    @property
    def skips_bad_lines(self) -> bool:
        return bool(self.options["--skip-bad-lines"])

    @property
    def files(self) -> FileSelection:
        """The options for files, as they were when the folder was begun."""
        skips = bool(self.options[_SKIP_BAD_FILES])
        return replace(FileSelection.of_signature(self.options), skip_bad=skips)


@dataclass(slots=True)
class ShardRecord:
    """The progress of one source. The first ``bytes`` of its file of chunks, whose checksum is
    ``sha256``, hold the documents that ``state`` has counted."""

    name: str
    format: Format
    source: dict[str, Any]
    left_out: dict[str, int]
    state: BuildState
    finished: bool = False
    bytes: int = 0
    sha256: str = ""
    large_files: list[str] = field(default_factory=list[str])


def manifest_for(sources: Sequence[str], options: BuildOptions) -> FolderManifest:
    """Return the manifest for a folder into which these sources are cut."""
    cutting_options = {
        name: value for name, value in options.signature().items() if name not in _NOT_OF_CUTTING
    }
    cutting_options["--skip-bad-lines"] = options.skip_bad_lines
    cutting_options[_SKIP_BAD_FILES] = options.files.skip_bad
    return FolderManifest(json.loads(json.dumps(cutting_options)), tuple(sources))


class ChunkFolder:
    """The files of a folder of chunks, by the number of the source."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None

    def chunks(self, number: int) -> Path:
        """Return the path of the chunks of a finished source."""
        return self.path / f"{number:05}.jsonl.gz"

    def chunks_under_way(self, number: int) -> Path:
        """Return the path of the chunks of a source that is being cut."""
        return self.path / f"{number:05}.jsonl.gz.new"

    def record_file(self, number: int) -> Path:
        return self.path / f"{number:05}.json"

    # The manifest

    def manifest(self) -> FolderManifest:
        """Return the manifest. Raises SourceError if it is missing or cannot be read."""
        path = self.path / _MANIFEST
        if not path.is_file():
            raise SourceError(
                "The folder holds no chunks.",
                where=str(self.path),
                allowed="the folder that was given to python -m index_jobs chunk as --out",
                do="Cut the sources first: python -m index_jobs chunk SOURCE... --out DIR",
            )
        content = _read(path)
        if (content.get("format"), content.get("version")) != (FOLDER_FORMAT, FOLDER_VERSION):
            raise SourceError(
                f"{_MANIFEST} is not the manifest of a folder of chunks.",
                where=str(self.path),
                allowed=f"{FOLDER_FORMAT}, version {FOLDER_VERSION}",
                do="Name the folder that was given to python -m index_jobs chunk as --out.",
            )
        try:
            manifest = FolderManifest(dict(content["options"]), tuple(content["sources"]))
            usual = set(manifest_for((), BuildOptions()).options)
            if set(manifest.options) != usual:
                raise KeyError("options")
            return manifest
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(path) from error

    def claim(self, wanted: FolderManifest) -> None:
        """Reserve the folder for these sources and options, or check that it is reserved for them.
        Raises ArgumentError if it belongs to others or holds other files."""
        path = self.path / _MANIFEST
        self.path.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _check_same(self.manifest(), wanted, str(self.path))
            return
        if any(not name.name.startswith(_MANIFEST) for name in self.path.iterdir()):
            raise ArgumentError(
                "The folder is not empty, and holds no chunks.",
                where=str(self.path),
                allowed="a new folder, or one that this command has begun",
                do="Give another --out.",
            )
        content = {
            "format": FOLDER_FORMAT,
            "version": FOLDER_VERSION,
            "options": wanted.options,
            "sources": wanted.sources,
        }
        write_atomically(path, json.dumps(content, indent=1).encode())

    # Records

    def record(self, number: int) -> ShardRecord | None:
        """Return the progress of a source, or None if it is not begun. Raises SourceError."""
        path = self.record_file(number)
        if not path.exists():
            return None
        content = _read(path)
        values: Any = content.get("record")
        if content.get("sha256") != _digest(values):
            raise _damaged(path)
        record = ShardRecord(**values)
        record.state = BuildState(**values["state"])
        return record

    def write_record(self, number: int, record: ShardRecord) -> None:
        """Replace the record of a source."""
        values = asdict(record)
        content = {"record": values, "sha256": _digest(values)}
        write_atomically(self.record_file(number), json.dumps(content).encode())

    def is_whole(self, number: int, record: ShardRecord) -> bool:
        """Return whether the chunks of a source are complete, judged by their size."""
        path = self.chunks(number)
        return record.finished and path.is_file() and path.stat().st_size == record.bytes

    # Several processes

    def hold(self, number: int) -> None:
        """Lock a source against other processes until ``release``. Raises IndexLockedError."""
        if self._lock is None:
            self._lock = (self.path / "lock").open("ab")
        if not try_lock_byte(self._lock.fileno(), number):
            raise IndexLockedError(
                "Another process is cutting this source.",
                where=str(self.chunks_under_way(number)),
                do="Wait for it, or give each process its own share: --share 1/2, --share 2/2.",
            )

    def release(self) -> None:
        """Unlock all sources that this process has locked."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def verified(folder: ChunkFolder, note: Callable[[str], None]) -> list[ShardRecord]:
    """Return the records of all sources, after comparing their files with the checksums.
    Raises SourceError if a source is missing or its chunks are damaged."""
    sources = folder.manifest().sources
    records: list[ShardRecord] = []
    missing: list[str] = []
    for number, name in enumerate(sources):
        record = folder.record(number)
        if record is not None and record.finished:
            records.append(record)
        else:
            missing.append(f"{name} ({number:05})")
    if missing:
        shown = ", ".join(missing[:SHOWN_EXAMPLES])
        raise SourceError(
            f"{len(missing):,} of {len(sources):,} sources are not cut completely.",
            where=shown + (", ..." if len(missing) > SHOWN_EXAMPLES else ""),
            allowed="a folder in which all sources are cut completely",
            do="Run the same chunk command again, or copy the files of the other machines into"
            f" {folder.path}.",
        )
    total = sum(record.bytes for record in records)
    note(f"Verifying {len(records):,} files of chunks, {total / 1e6:,.1f} MB.")
    for number, record in enumerate(records):
        if not folder.is_whole(number, record) or _sha256(folder.chunks(number)) != record.sha256:
            raise SourceError(
                f"The chunks of {record.name} are damaged.",
                where=str(folder.chunks(number)),
                allowed=f"{record.bytes:,} bytes with the SHA-256 {record.sha256}",
                do="Copy the file again, or remove it and run the same chunk command again.",
            )
    return records


def _sha256(path: Path) -> str:
    with readable(str(path)), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(record: object) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    with readable(str(path)):
        data = path.read_bytes()
    try:
        content: Any = json.loads(data)
    except ValueError as error:
        raise _damaged(path) from error
    if not isinstance(content, dict):
        raise _damaged(path)
    return cast("dict[str, Any]", content)


def _damaged(path: Path) -> SourceError:
    return SourceError(
        "The file is damaged.",
        where=str(path),
        do="Copy it again, or remove it and run the same chunk command again.",
    )


def _check_same(content: FolderManifest, wanted: FolderManifest, where: str) -> None:
    changed = [
        f"{name} was {json.dumps(content.options.get(name))}, is {json.dumps(value)}"
        for name, value in {**dict.fromkeys(content.options), **wanted.options}.items()
        if content.options.get(name) != value
    ]
    if content.sources != wanted.sources:
        changed.append("the sources, or their order")
    if changed:
        raise ArgumentError(
            f"The folder was started with other options or sources: {'; '.join(changed)}.",
            where=where,
            allowed="the same command as before",
            do="Give another --out, or remove the folder.",
        )


# Writing the file of chunks of one source, with checkpoints to resume from


_BLOCK_BYTES = 1 << 20


class ChunkWriter:
    """A writer that appends batches to the file of a source. If the process is killed, everything
    after the last checkpoint is lost."""

    def __init__(self, folder: ChunkFolder, number: int, record: ShardRecord) -> None:
        """Resume at ``record``; truncate what the file holds beyond it.

        Raises ValueError if the file does not match the record; OSError.
        """
        self.record = record
        self._folder = folder
        self._number = number
        self._path = folder.chunks_under_way(number)
        finished = folder.chunks(number)
        if record.bytes and not self._path.exists() and finished.exists():
            finished.rename(self._path)  # interrupted just before the record was updated
        self._hash = hashlib.sha256()
        self._file = self._path.open("r+b" if record.bytes else "wb")
        try:
            self._verify(record)
        except BaseException:
            self._file.close()
            raise

    def _verify(self, record: ShardRecord) -> None:
        """Compare the file with the record, and truncate the file after what the record covers."""
        left = record.bytes
        while left:
            block = self._file.read(min(left, _BLOCK_BYTES))
            if not block:
                break
            self._hash.update(block)
            left -= len(block)
        if left or (record.bytes and self._hash.hexdigest() != record.sha256):
            raise ValueError(self._path)
        self._file.truncate()

    def ids(self) -> SeenIds:
        """Return the ids of the documents that have been written."""
        seen = SeenIds()
        if self.record.bytes:
            with CorpusFile(self._path, str(self._path)) as file:
                for _, document in ready_documents(file):
                    seen.add(document.id)
        return seen

    def add(self, packed: Packed, position: Position) -> None:
        """Write a batch; ``position`` is the reading position after it."""
        self._file.write(packed.packed)
        self._hash.update(packed.packed)
        self.record.bytes += len(packed.packed)
        self.record.state.take(packed.counts, position)

    def checkpoint(self) -> None:
        """Make what is written survive a kill of the process and a crash of the machine."""
        self._sync()
        self._folder.write_record(self._number, self.record)

    def finish(self) -> None:
        """Complete the file."""
        self._sync()
        self._file.close()
        self._path.replace(self._folder.chunks(self._number))
        sync(self._folder.path)
        self.record.finished = True
        self._folder.write_record(self._number, self.record)

    def close(self) -> None:
        """Close the file; another run can resume it. May be called twice."""
        self._file.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self.record.sha256 = self._hash.hexdigest()


def remove_chunks(folder: ChunkFolder, number: int) -> None:
    """Remove a source from the folder: its record first, then its files."""
    paths: list[Path] = [
        folder.record_file(number),
        folder.chunks(number),
        folder.chunks_under_way(number),
    ]
    for path in paths:
        path.unlink(missing_ok=True)
