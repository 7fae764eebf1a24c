"""arag-search info: what an index is, and whether its files agree with that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from arag_search.engines.deletions import Deletions
    from arag_search.engines.lucene.reader import IndexStatistics
    from arag_search.engines.lucene.snapshot import PartStatistics
    from arag_search.engines.opensearch.reader import ClusterStatistics, ShardStatistics
    from arag_search.index import Index
    from arag_search.manifest import Manifest

    Statistics = IndexStatistics | ClusterStatistics
    Part = PartStatistics | ShardStatistics


def info_command(
    index: Annotated[
        str, typer.Argument(help="The folder or address of the index.", metavar="INDEX")
    ],
    checksums: Annotated[
        bool,
        typer.Option(
            "--checksums", help="Also read every byte of a folder and compare it with its checksum."
        ),
    ] = False,
    vectors: Annotated[
        str | None,
        typer.Option(
            help="The folder of the vectors.  [env: ARAG_VECTORS]  [default: INDEX/vectors]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Describe an index, and verify it.

    Prints the manifest in words, and compares files and counts with it; with --checksums also every
    byte that is on disk. On a server, counts are compared. Exit code 1 where they do not agree.
    Says how much of it is deleted documents, which scores count until arag-search compact, and
    which vectors there are.

    Examples:

    \b
      arag-search info my-index
      arag-search info my-index --checksums --json
      arag-search info http://localhost:9200/my-index
    """
    from arag_search.cli.results import print_json, print_text
    from arag_search.engines.deletions import deletions_of
    from arag_search.index import open_index

    with open_index(index) as opened:
        manifest = opened.manifest
        statistics, verified = _verified(opened, checksums)
        unfinished = _unfinished_update(opened)
    deletions = deletions_of(statistics.chunks, statistics.sentences)
    found = _vectors(index, vectors, manifest)
    if json:
        described = _info_json(index, manifest, statistics, deletions, verified)
        vectors_json = [
            {"folder": str(path), "fits": fits, **content} for path, fits, content, _ in found
        ]
        described = {**described, "unfinished_update": unfinished, "vectors": vectors_json}
        print_json(described, pretty=True)
        return 0
    lines = _lines(index, manifest, statistics, deletions, verified)
    if unfinished:
        lines.append(f"  unfinished   an update is under way or was stopped: {unfinished}")
    lines += [f"  vectors      {path}: {text}" for path, _, _, text in found]
    print_text("\n".join(lines))
    return 0


def _verified(opened: Index, checksums: bool) -> tuple[Statistics, list[str]]:
    """What the index consists of, and what of it was verified."""
    from arag_search.engines.lucene.reader import LuceneEngine
    from arag_search.engines.opensearch.reader import OpenSearchEngine
    from arag_search.errors import ArgumentError

    engine = opened.engine
    if isinstance(engine, OpenSearchEngine):
        if checksums:
            raise ArgumentError(
                "--checksums: the files of a server cannot be read.",
                where=opened.location,
                allowed="an index in a folder",
                do="Leave it out; the server checks its files itself.",
            )
        found = engine.statistics()
        if engine.unfinished_update:
            return found, []
        check_counts(opened.manifest, found, opened.location)
        return found, ["counts"]
    if not isinstance(engine, LuceneEngine):
        raise TypeError(f"an engine without files: {type(engine).__name__}")
    statistics = engine.statistics()
    check_counts(opened.manifest, statistics, opened.location)
    if checksums:
        engine.verify()
    return statistics, ["counts", "files", *(["checksums"] if checksums else [])]


def _vectors(
    location: str, vectors: str | None, manifest: Manifest
) -> list[tuple[Path, bool, dict[str, Any], str]]:
    """The sidecars that are found: folder, whether it is of the index as it is, and the rest as
    JSON and in words."""
    from arag_search.engines.opensearch.address import is_address
    from arag_search.errors import VectorsError
    from arag_search.vectors.place import VECTORS_VARIABLE, sidecars, vectors_root

    if vectors is None and is_address(location) and not os.environ.get(VECTORS_VARIABLE):
        return []
    found: list[tuple[Path, bool, dict[str, Any], str]] = []
    for path, sidecar in sidecars(vectors_root(location, vectors)):
        if isinstance(sidecar, VectorsError):
            found.append((path, False, {"error": sidecar.what}, f"damaged: {sidecar.what}"))
            continue
        fits = sidecar.fingerprint == manifest.fingerprint
        size = sum(file.stat().st_size for file in path.iterdir())
        content: dict[str, Any] = {
            "encoder": sidecar.encoder.name,
            "dimension": sidecar.encoder.dimension,
            "rows": sidecar.rows,
            "index": sidecar.index,
            "dtype": sidecar.dtype,
            "bytes": size,
            "created": sidecar.created,
            "fingerprint": sidecar.fingerprint,
        }
        rows = ", ".join(_count(rows, unit) for unit, rows in sidecar.rows.items())
        kinds = ", ".join(dict.fromkeys(sidecar.index.values()))
        state = "fit the index" if fits else "of another state of the index"
        text = (
            f"{rows}; {sidecar.encoder.name}, {sidecar.encoder.dimension:,} dimensions;"
            f" {kinds}, {sidecar.dtype}, {size:,} bytes; {state}"
        )
        found.append((path, fits, content, text))
    return found


def _unfinished_update(opened: Index) -> str:
    """The command of an update that is not finished; one in a folder leaves nothing."""
    from arag_search.engines.opensearch.reader import OpenSearchEngine

    engine = opened.engine
    return engine.unfinished_update if isinstance(engine, OpenSearchEngine) else ""


def check_counts(manifest: Manifest, statistics: Statistics, where: str) -> None:
    """Raise IndexDamagedError where the documents on disk are not those of the manifest."""
    from arag_search.errors import IndexDamagedError

    found = {"chunks": (manifest.chunks, statistics.chunks.documents)}
    if statistics.sentences is not None:
        found["sentences"] = (manifest.sentences, statistics.sentences.documents)
    for name, (said, counted) in found.items():
        if said != counted:
            raise IndexDamagedError(
                f"The manifest says {said:,} {name}, the index holds {counted:,}.",
                where=where,
                do="Build the index again with --overwrite.",
            )


def _info_json(
    location: str,
    manifest: Manifest,
    statistics: Statistics,
    deletions: Deletions,
    verified: list[str],
) -> dict[str, Any]:
    import dataclasses

    import orjson

    parts = {"chunks": statistics.chunks, "sentences": statistics.sentences}
    return {
        "location": location,
        "manifest": orjson.loads(manifest.to_json()),
        "files": {
            name: None if part is None else dataclasses.asdict(part) for name, part in parts.items()
        },
        "deleted_share": round(deletions.share, 6),
        "verified": verified,
    }


def _lines(
    location: str,
    manifest: Manifest,
    statistics: Statistics,
    deletions: Deletions,
    verified: list[str],
) -> list[str]:
    from arag_search.engines.deletions import MAX_DELETED_SHARE

    serves = "chunks and sentences" if manifest.has_sentences else "chunks"
    if "exact" in manifest.without:
        serves += ", no keyword search"
    chunking = f"cut at {manifest.chunk_tokens:,} tokens"
    if manifest.already_chunked:
        chunking = "as they came, already cut"
    parts: list[tuple[str, Part]] = [("chunk", statistics.chunks)]
    if statistics.sentences is not None:
        parts.append(("sentence", statistics.sentences))
    lines = [
        f"Index {location}",
        f"  built        {manifest.created} from {', '.join(manifest.sources)} "
        f"({manifest.source_format})",
        f"  holds        {_count(manifest.documents, 'document')}, "
        f"{_count(manifest.chunks, 'passage')} ({chunking}), "
        f"{_count(manifest.sentences, 'sentence')}, {_count(manifest.tokens, 'token')}",
        f"  serves       {serves}; fields {manifest.query_schema.describe()}",
        f"  titles       {'yes' if manifest.has_titles else 'none: title: finds nothing'}",
        f"  ranking      BM25, k1 {manifest.k1:g}, b {manifest.b:g}; {manifest.analyser} analyser",
        f"  engine       {manifest.engine} {manifest.engine_version}, "
        f"format {manifest.format_version}, update {manifest.update}",
        f"  fingerprint  {manifest.fingerprint}",
    ]
    for name, part in parts:
        share = part.deleted / max(part.documents + part.deleted, 1)
        deleted = f", {share:.1%} deleted" if part.deleted else ""
        lines.append(
            f"  on disk      {name} index: {part.bytes:,} bytes in {_pieces(part)}, "
            f"{_count(part.segments, 'segment')}{deleted}"
        )
    if manifest.skipped_lines:
        lines.append(f"  left out     {_count(manifest.skipped_lines, 'bad line')}")
    if manifest.undeclared_metadata:
        keys = ", ".join(
            f"{key} ({count:,})" for key, count in manifest.undeclared_metadata.items()
        )
        lines.append(f"  ignored      metadata that was not declared: {keys}")
    if deletions.share > MAX_DELETED_SHARE:
        lines.append(
            f"  advice       {deletions.share:.1%} deleted: scores are off until "
            f"arag-search compact {location}"
        )
    if not verified:
        return lines
    *others, last = [each for each in ("files", "counts", "checksums") if each in verified]
    checked = f"{', '.join(others)} and {last}" if others else last
    lines.append(f"  verified     {checked} agree")
    return lines


def _pieces(part: Part) -> str:
    """What the bytes are spread over: files of a folder, shards of a server."""
    from arag_search.engines.lucene.snapshot import PartStatistics

    if isinstance(part, PartStatistics):
        return _count(part.files, "file")
    return _count(part.shards, "shard")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
