"""The manifest of a sidecar: the vectors of one index, and the proof that they belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import orjson

from arag_search.errors import VectorsDamagedError, VectorsNotFoundError
from arag_search.query.fields import MetadataType
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.storage.files import (
    EMBED_AGAIN,
    VECTORS_VERSION,
    FileRecord,
    read_record,
)
from arag_search.vectors.storage.shards import ShardRecord, StoredShard, StoredType, shard_file

MANIFEST = "vectors.json"
FLAT = "flat"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorManifest:
    """The description of a sidecar, with all that is needed to search it and to trust it.

    ``fingerprint`` and ``placement`` are those of the embedded index: ordinals are valid for this
    placement alone. ``chunks`` is the number of its chunks. ``rows`` counts the rows of the shards,
    ``dead_rows`` those whose text is not, or no longer, in the index. ``index`` is, for each unit,
    "flat" or the FAISS factory, ``nprobe`` the number of lists that a search probes (0 if flat).
    ``sentence_titles`` says that sentences were encoded below the title of their passage.
    Search rescores ``rescore`` times as many candidates as requested by their stored vectors.
    ``metadata`` are the fields that scopes can name. ``files`` are those besides the shards'.
    """

    format_version: int = VECTORS_VERSION
    created: str
    encoder: EncoderIdentity
    dtype: StoredType
    units: tuple[VectorUnit, ...]
    rows: dict[VectorUnit, int]
    dead_rows: dict[VectorUnit, int]
    chunks: int
    index: dict[VectorUnit, str]
    nprobe: dict[VectorUnit, int]
    rescore: int
    fingerprint: str
    placement: str
    sentence_titles: bool = False
    metadata: dict[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    shards: tuple[ShardRecord, ...]
    files: dict[str, FileRecord] = field(default_factory=dict[str, FileRecord])

    @property
    def live_rows(self) -> dict[VectorUnit, int]:
        """The rows that searches find."""
        return {unit: rows - self.dead_rows[unit] for unit, rows in self.rows.items()}

    def shards_in(self, folder: Path) -> list[StoredShard]:
        """Return the shards, whose files are in the folder of the sidecar."""
        return [StoredShard(folder, record) for record in self.shards]

    def files_in(self, folder: Path) -> dict[Path, FileRecord]:
        """Return all files of the sidecar in a folder but the manifest, with their sizes and
        checksums."""
        files = {folder / name: record for name, record in self.files.items()}
        for shard in self.shards:
            for role, record in shard.files.items():
                files[shard_file(folder, shard.number, role)] = record
        return files

    def to_json(self) -> str:
        """Return the manifest as one line of JSON."""
        return orjson.dumps(self).decode()

    @staticmethod
    def from_json(text: str, where: str) -> VectorManifest:
        """Read a manifest. ``where`` names the sidecar in errors.

        Raises VectorsVersionError for another format version, VectorsDamagedError for anything
        that is not a manifest.
        """
        made = read_record(VectorManifest, text.encode(), where, EMBED_AGAIN)
        units = set(made.units)
        by_unit = (made.rows, made.dead_rows, made.index, made.nprobe)
        if (
            any(set(values) != units for values in by_unit)
            or any(not 0 <= made.dead_rows[unit] <= made.rows[unit] for unit in units)
            or any(not shard.holds(made.units) for shard in made.shards)
            or any("/" in name for name in made.files)
        ):
            raise VectorsDamagedError(
                "The record cannot be read (its parts do not agree).", where=where, do=EMBED_AGAIN
            )
        return made


def read_manifest(folder: Path) -> VectorManifest:
    """Read the manifest of a sidecar. Raises VectorsNotFoundError, VectorsDamagedError,
    VectorsVersionError."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise VectorsNotFoundError(
            "There are no vectors, or none that were finished.",
            where=str(folder),
            do="Make them: arag-search embed INDEX --encoder NAME",
        ) from None
    return VectorManifest.from_json(data.decode("utf-8", "replace"), str(folder))


def ordinals_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the ordinals of all rows of a unit, int64; -1 for rows without text."""
    return folder / f"{unit}.ordinals.npy"


def keys_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the keys of all rows of a unit, uint8 of shape (rows, 16)."""
    return folder / f"{unit}.keys.npy"


def trained_file(folder: Path, unit: VectorUnit) -> Path:
    """Return the file with the trained index of a unit, without rows."""
    return folder / f"{unit}.trained.faiss"


def index_files(folder: Path, unit: VectorUnit) -> tuple[Path, Path]:
    """Return the files with the FAISS index of a unit and its inverted lists."""
    return folder / f"{unit}.faiss", folder / f"{unit}.ivfdata"
