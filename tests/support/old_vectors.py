"""Indexes and vectors in the format of version 0.1.0: no placement, ordinals alone bind them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from arag_search.corpus import Chunk
from arag_search.engines.lucene.update import LuceneUpdate
from arag_search.manifest import chunk_fingerprint
from arag_search.search.index import open_index
from arag_search.vectors.base import VECTOR_UNITS
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.storage.files import file_record
from arag_search.vectors.storage.rows import rows_of
from arag_search.vectors.storage.shards import shard_file


def forget_placement(location: str) -> None:
    """Remove the placement from the manifest of an index."""
    with LuceneUpdate(Path(location)) as target:
        target.describe(dataclasses.replace(target.manifest, placement=""))


def write_old_vectors(
    location: str,
    encoder_name: str,
    *,
    shard_chunks: int = 7,
    created: str = "2099-01-01T00:00:00+00:00",
) -> Path:
    """Write the sidecar of an index in format version 1, without its search structures; return its
    folder."""
    encoder = open_encoder(encoder_name)
    with open_index(location) as index:
        chunks = list(index.scan())
        fingerprint = index.manifest.fingerprint
        metadata = dict(index.manifest.metadata)
    folder = Path(location) / "vectors" / fingerprint[:16]
    folder.mkdir(parents=True)
    shards: list[dict[str, object]] = []
    for number, start in enumerate(range(0, len(chunks), shard_chunks)):
        part = chunks[start : start + shard_chunks]
        rows: dict[str, int] = {}
        for unit in VECTOR_UNITS:
            texts = [row for chunk in part for row in rows_of(chunk, unit)]
            rows[unit] = len(texts)
            _save(folder, number, f"{unit}.npy", encoder.encode([text for _, text in texts]))
            ordinals = np.array([ordinal for ordinal, _ in texts], np.int64)
            _save(folder, number, f"{unit}.ordinals.npy", ordinals)
        _save(folder, number, "chunks.npy", np.array([c.ordinal for c in part], np.int64))
        _save(folder, number, "fingerprints.npy", _prints(part))
        lines = [json.dumps([chunk.doc_id, dict(chunk.metadata)]) + "\n" for chunk in part]
        shard_file(folder, number, "metadata.jsonl").write_text("".join(lines))
        prefix = shard_file(folder, number, "").name
        files = {
            path.name.removeprefix(prefix): dataclasses.asdict(file_record(path))
            for path in folder.glob(f"{prefix}*")
        }
        record: dict[str, object] = {
            "number": number,
            "first_ordinal": part[0].ordinal,
            "last_ordinal": part[-1].ordinal,
            "chunks": len(part),
            "rows": rows,
            "files": files,
            "format_version": 1,
        }
        shard_file(folder, number, "json").write_text(json.dumps(record))
        shards.append(record)
    manifest = {
        "format_version": 1,
        "created": created,
        "encoder": dataclasses.asdict(encoder.identity),
        "dtype": "float32",
        "units": VECTOR_UNITS,
        "rows": {unit: sum(shard["rows"][unit] for shard in shards) for unit in VECTOR_UNITS},  # type: ignore[index]
        "chunks": len(chunks),
        "deleted_chunks": 0,
        "index": dict.fromkeys(VECTOR_UNITS, "flat"),
        "nprobe": dict.fromkeys(VECTOR_UNITS, 0),
        "rescore": 10,
        "fingerprint": fingerprint,
        "metadata": metadata,
        "shards": shards,
        "files": {},
    }
    (folder / "vectors.json").write_text(json.dumps(manifest))
    return folder


def _save(folder: Path, number: int, role: str, array: np.ndarray) -> None:
    np.save(shard_file(folder, number, role), array)


def _prints(chunks: Sequence[Chunk]) -> np.ndarray:
    joined = b"".join(chunk_fingerprint(chunk).to_bytes(32, "big") for chunk in chunks)
    return np.frombuffer(joined, np.uint8).reshape(-1, 32)
