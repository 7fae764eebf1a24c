"""arag-search info: what an index is, and whether its files agree with that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from arag_search.engines.lucene.reader import IndexStatistics
    from arag_search.manifest import Manifest


def info_command(
    index: Annotated[str, typer.Argument(help="The folder of the index.", metavar="INDEX")],
    checksums: Annotated[
        bool,
        typer.Option("--checksums", help="Also read every byte and compare it with its checksum."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Describe an index, and verify it.

    Prints the manifest in words, and compares files and counts with it; with --checksums also every
    byte that is on disk. Exit code 1 where they do not agree.

    Examples:

    \b
      arag-search info my-index
      arag-search info my-index --checksums --json
    """
    from arag_search.cli.results import print_json, print_text
    from arag_search.engines.lucene.reader import LuceneEngine
    from arag_search.index import open_index

    with open_index(index) as opened:
        engine = opened.engine
        if not isinstance(engine, LuceneEngine):
            raise TypeError(f"an engine without files: {type(engine).__name__}")
        statistics = engine.statistics()
        manifest = opened.manifest
        check_counts(manifest, statistics, index)
        if checksums:
            engine.verify()
    if json:
        print_json(_info_json(index, manifest, statistics, checksums), pretty=True)
        return 0
    print_text("\n".join(_lines(index, manifest, statistics, checksums)))
    return 0


def check_counts(manifest: Manifest, statistics: IndexStatistics, where: str) -> None:
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
    location: str, manifest: Manifest, statistics: IndexStatistics, checksums: bool
) -> dict[str, Any]:
    import orjson

    parts = {"chunks": statistics.chunks, "sentences": statistics.sentences}
    return {
        "location": location,
        "manifest": orjson.loads(manifest.to_json()),
        "files": {
            name: None
            if part is None
            else {
                "documents": part.documents,
                "deleted": part.deleted,
                "segments": part.segments,
                "files": part.files,
                "bytes": part.bytes,
            }
            for name, part in parts.items()
        },
        "verified": ["counts", "files", *(["checksums"] if checksums else [])],
    }


def _lines(
    location: str, manifest: Manifest, statistics: IndexStatistics, checksums: bool
) -> list[str]:
    serves = "chunks and sentences" if manifest.has_sentences else "chunks"
    chunking = f"cut at {manifest.chunk_tokens:,} tokens"
    if manifest.already_chunked:
        chunking = "as they came, already cut"
    parts = [("chunk", statistics.chunks)]
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
            f"  on disk      {name} index: {part.bytes:,} bytes in {_count(part.files, 'file')}, "
            f"{_count(part.segments, 'segment')}{deleted}"
        )
    if manifest.skipped_lines:
        lines.append(f"  left out     {_count(manifest.skipped_lines, 'bad line')}")
    if manifest.undeclared_metadata:
        keys = ", ".join(
            f"{key} ({count:,})" for key, count in manifest.undeclared_metadata.items()
        )
        lines.append(f"  ignored      metadata that was not declared: {keys}")
    checked = "files, counts and checksums agree" if checksums else "files and counts agree"
    lines.append(f"  verified     {checked}")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
