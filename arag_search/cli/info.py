"""arag-search info: describe an index, and verify its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
import typer

from arag_search.cli.options.index import Json, VectorsFolder
from arag_search.cli.output.printing import print_result
from arag_search.engines.base import MAX_DELETED_SHARE, deletions_of
from arag_search.engines.lucene.reader import IndexStatistics, LuceneEngine
from arag_search.engines.lucene.snapshot import PartStatistics
from arag_search.engines.open import is_folder_of_files
from arag_search.engines.opensearch.reader import ClusterStatistics, OpenSearchEngine
from arag_search.errors import (
    AragError,
    IndexDamagedError,
    IndexNotFoundError,
    VectorsError,
    VectorsNotNamedError,
)
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.query.forms import NONE
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.progress import counted
from arag_search.vectors.storage.files import check_contents, check_sizes
from arag_search.vectors.storage.folders import (
    FittingSidecar,
    fitting_sidecar,
    sidecars,
    vectors_root,
)
from arag_search.vectors.storage.manifest import VectorManifest
from index_jobs.updates.folder_index import FolderIndex
from index_jobs.updates.watching import watch_state

Statistics = IndexStatistics | ClusterStatistics


class Description(NamedTuple):
    """The description of an index or a sidecar as JSON and in words, and whether it is sound."""

    json: dict[str, Any]
    text: str
    is_sound: bool


def info_command(
    indexes: Annotated[
        list[str],
        typer.Argument(
            help="Folders and addresses of indexes, and folders of files that were searched.",
            metavar="INDEX...",
        ),
    ],
    checksums: Annotated[
        bool,
        typer.Option(
            "--checksums",
            help="Also read all passages, vectors and files, and compare them with what the "
            "manifests say.",
        ),
    ] = False,
    vectors: VectorsFolder = None,
    json: Json = False,
) -> int:
    """Describe indexes and their vectors, and verify them.

    Prints the manifest in words, and compares counts and sizes with it. With --checksums, every
    passage, every vector and every file on this machine is read and compared too; the line
    "verified" says what was read. The report includes the vectors, and the share of deleted
    documents, which count in scores until arag-search compact. The exit code is 1 if something is
    damaged.

    Several indexes are checked one after the other; a problem with one does not stop the check of
    the others.

    Examples:

    \b
      arag-search info my-index
      arag-search info my-index --checksums --json
      arag-search info indexes/* --checksums
      arag-search info notes/
      arag-search info http://localhost:9200/my-index
    """
    described: list[Description] = []
    for index in indexes:
        try:
            description = _describe(index, vectors, checksums)
        except AragError as error:
            if len(indexes) == 1:
                raise
            text = f"Index {index}\n{_line('problem', error.what)}"
            description = Description({"location": index, "error": error.what}, text, False)
        described.append(description)
        if not json:
            print_result(description.text, description.json, json)
    if json:
        values = [description.json for description in described]
        print_result("", values if len(values) > 1 else values[0], json)
    return 0 if all(description.is_sound for description in described) else 1


def _describe(index: str, vectors: Path | None, checksums: bool) -> Description:
    """Describe and verify an index and its vectors; of a folder of files, the index in the cache.
    Raises the errors of opening them, and IndexDamagedError if the index differs from what its
    manifest says."""
    if is_folder_of_files(index):
        folder = FolderIndex.of(index)
        if not folder.exists:
            raise IndexNotFoundError(
                "This folder of files has no index yet.",
                where=index,
                do=f"The first search builds it: arag-search search {index} 'QUERY'",
            )
        index = str(folder.location)
    with open_index(index) as opened:
        manifest, engine = opened.manifest, opened.engine
        # Updates in a folder leave nothing unfinished.
        unfinished = engine.unfinished_update if isinstance(engine, OpenSearchEngine) else ""
        statistics, verified = _verified(opened, checksums, is_whole=not unfinished)
        described_vectors = _sidecars(opened, vectors, checksums)
    is_sound = all(sidecar.is_sound for sidecar in described_vectors)
    if checksums and described_vectors and is_sound:
        verified.append("vectors")
    watched = watch_state(index)
    share = deletions_of(statistics.chunks, statistics.sentences).share
    parts = {"chunks": statistics.chunks, "sentences": statistics.sentences}
    values = {
        "location": index,
        "manifest": orjson.loads(manifest.to_json()),
        "files": {
            name: None if part is None else dataclasses.asdict(part) for name, part in parts.items()
        },
        "deleted_share": round(share, 6),
        "verified": verified,
        "unfinished_update": unfinished,
        "vectors": [sidecar.json for sidecar in described_vectors],
        "watched": None if watched is None else dataclasses.asdict(watched),
    }
    lines = [f"Index {index}", *_manifest_lines(manifest), *_part_lines(statistics)]
    if manifest.skipped_lines:
        lines.append(_line("left out", counted(manifest.skipped_lines, "bad line")))
    if ignored := manifest.undeclared_metadata:
        keys = ", ".join(f"{key} ({count:,})" for key, count in ignored.items())
        lines.append(_line("ignored", f"metadata that was not declared: {keys}"))
    if share > MAX_DELETED_SHARE:
        advice = f"{share:.1%} deleted: scores are off until arag-search compact {index}"
        lines.append(_line("advice", advice))
    if verified:
        lines.append(_line("verified", _verified_words(verified)))
    if watched is not None:
        in_step = f"{watched.in_step or 'never'}, with {', '.join(watched.sources)}"
        lines.append(_line("in step", in_step))
        if watched.problem:
            lines.append(_line("not in step", " ".join(watched.problem.split())))
        lines += [_line("", line) for line in watched.left_out]
    if unfinished:
        running = f"an update is running or was interrupted: {unfinished}"
        lines.append(_line("unfinished", running))
    lines += [_line("vectors", sidecar.text) for sidecar in described_vectors]
    return Description(values, "\n".join(lines), is_sound)


def _line(label: str, text: str) -> str:
    return f"  {label:<13}{text}"


def _verified(opened: Index, checksums: bool, *, is_whole: bool) -> tuple[Statistics, list[str]]:
    """Return the statistics of the index, and the names of its verified parts."""
    engine = opened.engine
    if not isinstance(engine, LuceneEngine | OpenSearchEngine):
        raise TypeError(f"an engine without files: {type(engine).__name__}")
    statistics = engine.statistics()
    if not is_whole:
        return statistics, []
    check_counts(opened.manifest, statistics, opened.location)
    verified = ["counts"]
    if checksums:
        if isinstance(engine, LuceneEngine):  # a server checks its files itself
            engine.verify()
            verified.append("checksums")
        _check_passages(opened)
        verified.append("passages")
    return statistics, verified


def _check_passages(opened: Index) -> None:
    """Raise IndexDamagedError if the passages or their places differ from those of the manifest.
    All passages are read."""
    digest, manifest = CorpusDigest.of(opened.engine.scan(None)), opened.manifest
    wrong = [
        name
        for name in ("fingerprint", "placement")
        if fingerprint_hex(getattr(digest, name)) != getattr(manifest, name)
    ]
    if wrong:
        raise IndexDamagedError(
            f"The passages are not those of the manifest: another {' and another '.join(wrong)}.",
            where=opened.location,
            do="Build the index again with --overwrite.",
        )


def check_counts(manifest: Manifest, statistics: Statistics, where: str) -> None:
    """Raise IndexDamagedError if the documents on disk are not those of the manifest."""
    counts = {"chunks": (manifest.chunks, statistics.chunks.documents)}
    if statistics.sentences is not None:
        counts["sentences"] = (manifest.sentences, statistics.sentences.documents)
    for name, (stated, actual) in counts.items():
        if stated != actual:
            raise IndexDamagedError(
                f"The manifest says {stated:,} {name}, the index holds {actual:,}.",
                where=where,
                do="Build the index again with --overwrite.",
            )


def _manifest_lines(manifest: Manifest) -> list[str]:
    serves = "chunks and sentences" if manifest.has_sentences else "chunks"
    if "exact" in manifest.without:
        serves += ", no keyword search"
    folded = manifest.fold_characters
    chunking = f"cut at {manifest.chunk_tokens:,} tokens"
    if manifest.already_chunked:
        chunking = "as given (pre-chunked)"
    words = "match as they are written"
    if manifest.language:
        language = "in no language" if manifest.language == NONE else f"in {manifest.language}"
        words = f"match their forms {language}: {', '.join(manifest.forms)}"
    rows = {
        "built": f"{manifest.created} from {', '.join(manifest.sources)} "
        f"({manifest.source_format})",
        "holds": f"{counted(manifest.documents, 'document')}, "
        f"{counted(manifest.chunks, 'passage')} ({chunking}), "
        f"{counted(manifest.sentences, 'sentence')}, {counted(manifest.tokens, 'token')}",
        "words": words,
        "lines": f"folded at {folded:,} characters" if folded else "as in the source",
        "serves": f"{serves}; fields {manifest.query_schema.describe()}",
        "titles": "yes" if manifest.has_titles else "none: title: finds nothing",
        "ranking": f"BM25, k1 {manifest.k1:g}, b {manifest.b:g}; {manifest.analyser} analyser",
        "engine": f"{manifest.engine} {manifest.engine_version}, "
        f"format {manifest.format_version}, update {manifest.update}",
        "fingerprint": manifest.fingerprint,
        "placement": manifest.placement,
    }
    return [_line(label, text) for label, text in rows.items()]


def _part_lines(statistics: Statistics) -> Iterator[str]:
    for name, part in (("chunk", statistics.chunks), ("sentence", statistics.sentences)):
        if part is None:
            continue
        is_folder = isinstance(part, PartStatistics)
        pieces = counted(part.files, "file") if is_folder else counted(part.shards, "shard")
        share = part.deleted / max(part.documents + part.deleted, 1)
        yield _line(
            "on disk",
            f"{name} index: {part.bytes:,} bytes in {pieces}, {counted(part.segments, 'segment')}"
            + (f", {share:.1%} deleted" if part.deleted else ""),
        )


def _verified_words(verified: Sequence[str]) -> str:
    *others, last = verified
    if others:
        return f"{', '.join(others)} and {last} agree"
    return f"{last} agree; --checksums reads passages, vectors and files too"


# Vectors


def _sidecars(opened: Index, vectors: Path | None, checksums: bool) -> list[Description]:
    """Describe the sidecars of an index. Sizes of files are compared; with ``checksums`` everything
    is read."""
    try:
        root = vectors_root(opened.location, vectors)
    except VectorsNotNamedError:
        return []
    try:
        fitting = fitting_sidecar(root, opened.manifest.placement)
    except VectorsError:
        fitting = None  # described as damaged below
    return [_sidecar(path, sidecar, fitting, checksums) for path, sidecar in sidecars(root)]


def _sidecar(
    path: Path,
    sidecar: VectorManifest | VectorsError,
    fitting: FittingSidecar | None,
    checksums: bool,
) -> Description:
    try:
        if isinstance(sidecar, VectorsError):
            raise sidecar
        (check_contents if checksums else check_sizes)(sidecar.files_in(path), "")
    except VectorsError as error:
        why = error.what if error is sidecar else f"{error.what} ({error.where})"
        content = {"folder": str(path), "fits": False, "error": why}
        return Description(content, f"{path}: damaged: {why}", False)
    fits = fitting is not None and fitting.path == path
    gone = None if not fits or fitting is None else fitting.deleted
    deleted = 0 if gone is None else int(gone.sum())
    size = sum(file.stat().st_size for file in path.iterdir())
    content: dict[str, Any] = {
        "folder": str(path),
        "fits": fits,
        "encoder": sidecar.encoder.name,
        "dimension": sidecar.encoder.dimension,
        "rows": sidecar.live_rows,
        "dead_rows": sidecar.dead_rows,
        "deleted_passages": deleted,
        "index": sidecar.index,
        "dtype": sidecar.dtype,
        "bytes": size,
        "created": sidecar.created,
        "fingerprint": sidecar.fingerprint,
        "placement": sidecar.placement,
        "verified": "contents" if checksums else "sizes",
    }
    rows = ", ".join(f"{rows:,} {unit}s" for unit, rows in sidecar.live_rows.items())
    kinds = ", ".join(dict.fromkeys(sidecar.index.values()))
    state = "of the index as it is" if fits else "of another state of the index, not searched"
    state += f", {counted(deleted, 'passage')} deleted since" if deleted else ""
    read = "all files read" if checksums else "sizes of files compared"
    text = (
        f"{path}: {rows}; {sidecar.encoder.name}, {sidecar.encoder.dimension:,} dimensions;"
        f" {kinds}, {sidecar.dtype}, {size:,} bytes; {state}; {read}"
    )
    return Description(content, text, True)
