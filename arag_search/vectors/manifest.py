"""What a sidecar is: the vectors of one index, and the proof that they belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from arag_search.query.fields import MetadataType
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.records import VECTORS_VERSION, read_record
from arag_search.vectors.shards import FileRecord, ShardRecord, StoredType

MANIFEST = "vectors.json"
FLAT = "flat"
_MEND = "Embed the index again."


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorManifest:
    """Everything one must know of a sidecar to search it and to trust it.

    ``fingerprint`` is that of the index that was embedded. ``rows`` and ``chunks`` count what the
    shards hold, ``deleted_chunks`` those of them that the index held no more. ``index`` is for each
    unit "flat" or the FAISS factory, ``nprobe`` how many lists a search looks into (0 where flat);
    ``rescore`` times as many candidates as are wanted are scored anew by their stored vectors.
    ``metadata`` are the fields that scopes can name. ``files`` are those beside the shards'.
    """

    format_version: int = VECTORS_VERSION
    created: str
    encoder: EncoderIdentity
    dtype: StoredType
    units: tuple[VectorUnit, ...]
    rows: dict[VectorUnit, int]
    chunks: int
    deleted_chunks: int = 0
    index: dict[VectorUnit, str]
    nprobe: dict[VectorUnit, int]
    rescore: int
    fingerprint: str
    metadata: dict[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    shards: tuple[ShardRecord, ...]
    files: dict[str, FileRecord] = field(default_factory=dict[str, FileRecord])

    def to_json(self) -> str:
        """The manifest as one line of JSON."""
        return orjson.dumps(self).decode()

    @staticmethod
    def from_json(text: str, where: str) -> VectorManifest:
        """Read a manifest. ``where`` names the sidecar in errors.

        Raises VectorsVersionError for another format version, VectorsDamagedError for anything
        that is not a manifest.
        """
        return read_record(VectorManifest, text.encode(), where, _MEND)
