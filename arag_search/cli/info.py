"""arag-search info: describe an index, and verify its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
import typer

from arag_search.cli.options.index import Json
from arag_search.cli.output.printing import print_json, print_text
from arag_search.engines.base import MAX_DELETED_SHARE, Deletions, deletions_of
from arag_search.engines.lucene.reader import IndexStatistics, LuceneEngine
from arag_search.engines.lucene.snapshot import PartStatistics
from arag_search.engines.opensearch.reader import (
    ClusterStatistics,
    OpenSearchEngine,
    ShardStatistics,
)
from arag_search.errors import (
    AragError,
    IndexDamagedError,
    IndexNotFoundError,
    VectorsError,
    VectorsNotNamedError,
)
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.query.forms import NONE
from arag_search.search.index import Index, open_index
from arag_search.system.progress import counted
from arag_search.vectors.storage.files import check_contents, check_sizes
from arag_search.vectors.storage.folders import (
    FittingSidecar,
    fitting_sidecar,
    sidecars,
    vectors_root,
)
from arag_search.vectors.storage.manifest import VectorManifest
from index_jobs.updates.folder_index import FolderIndex, is_folder_of_files
from index_jobs.updates.watching import watch_state

Statistics = IndexStatistics | ClusterStatistics
Part = PartStatistics | ShardStatistics


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
    vectors: Annotated[
        str | None,
        typer.Option(
            help="The folder of the vectors.  [env: ARAG_VECTORS]  [default: INDEX/vectors]",
            metavar="DIR",
        ),
    ] = None,
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
    if len(indexes) == 1:
        described = _describe(indexes[0], vectors, checksums)
        if json:
            print_json(described.json, pretty=True)
        else:
            print_text("\n".join(described.lines))
        return 0 if described.is_sound else 1
    results: list[_Described] = []
    for index in indexes:
        try:
            described = _describe(index, vectors, checksums)
        except AragError as error:
            problem = {"location": index, "error": error.what}
            described = _Described(
                problem, [f"Index {index}", f"  problem      {error.what}"], False
            )
        results.append(described)
        if not json:
            print_text("\n".join(described.lines))
    if json:
        print_json([described.json for described in results], pretty=True)
    return 0 if all(described.is_sound for described in results) else 1


class _Described(NamedTuple):
    """The description of an index as JSON and in words, and whether it is sound."""

    json: dict[str, Any]
    lines: list[str]
    is_sound: bool


def _describe(index: str, vectors: str | None, checksums: bool) -> _Described:
    """Describe and verify an index and its vectors; of a folder of files, the index in the cache.
    Raises the errors of opening them, and IndexDamagedError if the index differs from what its
    manifest says."""
    folder = FolderIndex.of(index) if is_folder_of_files(index) else None
    if folder is not None:
        if not folder.exists:
            raise IndexNotFoundError(
                "This folder of files has no index yet.",
                where=index,
                do=f"The first search builds it: arag-search search {index} 'QUERY'",
            )
        index = str(folder.location)
    with open_index(index) as opened:
        manifest = opened.manifest
        statistics, verified = _verified(opened, checksums)
        unfinished = _unfinished_update(opened)
        sidecars = described_sidecars(opened, vectors, checksums)
    deletions = deletions_of(statistics.chunks, statistics.sentences)
    if checksums and sidecars and all(sidecar.is_sound for sidecar in sidecars):
        verified.append("vectors")
    described = _info_json(index, manifest, statistics, deletions, verified)
    watched = watch_state(index)
    described = {
        **described,
        "unfinished_update": unfinished,
        "vectors": [sidecar.json for sidecar in sidecars],
        "watched": None if watched is None else dataclasses.asdict(watched),
    }
    lines = _lines(index, manifest, statistics, deletions, verified)
    if watched is not None:
        lines.append(
            f"  in step      {watched.in_step or 'never'}, with {', '.join(watched.sources)}"
        )
        lines += [f"  not in step  {' '.join(watched.problem.split())}"] * bool(watched.problem)
        lines += [f"               {line}" for line in watched.left_out]
    if unfinished:
        lines.append(f"  unfinished   an update is running or was interrupted: {unfinished}")
    lines += [f"  vectors      {sidecar.text}" for sidecar in sidecars]
    return _Described(described, lines, all(sidecar.is_sound for sidecar in sidecars))


def _verified(opened: Index, checksums: bool) -> tuple[Statistics, list[str]]:
    """Return the statistics of the index, and the names of its verified parts."""
    engine = opened.engine
    if not isinstance(engine, LuceneEngine | OpenSearchEngine):
        raise TypeError(f"an engine without files: {type(engine).__name__}")
    statistics = engine.statistics()
    if isinstance(engine, OpenSearchEngine) and engine.unfinished_update:
        return statistics, []
    check_counts(opened.manifest, statistics, opened.location)
    verified = ["counts"]
    if checksums:
        if isinstance(engine, LuceneEngine):  # a server checks its files itself
            engine.verify()
            verified.append("checksums")
        check_passages(opened)
        verified.append("passages")
    return statistics, verified


def check_passages(opened: Index) -> None:
    """Raise IndexDamagedError if the passages or their places differ from those of the manifest.
    All passages are read."""
    digest = CorpusDigest.of(opened.engine.scan(None))
    manifest = opened.manifest
    wrong: list[str] = []
    if fingerprint_hex(digest.fingerprint) != manifest.fingerprint:
        wrong.append("fingerprint")
    if fingerprint_hex(digest.placement) != manifest.placement:
        wrong.append("placement")
    if wrong:
        raise IndexDamagedError(
            f"The passages are not those of the manifest: another {' and another '.join(wrong)}.",
            where=opened.location,
            do="Build the index again with --overwrite.",
        )


def _unfinished_update(opened: Index) -> str:
    """Return the command of an unfinished update; updates in a folder leave nothing."""
    engine = opened.engine
    return engine.unfinished_update if isinstance(engine, OpenSearchEngine) else ""


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


def _info_json(
    location: str,
    manifest: Manifest,
    statistics: Statistics,
    deletions: Deletions,
    verified: list[str],
) -> dict[str, Any]:
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


def _words_of(manifest: Manifest) -> str:
    """Return how words match, with the language and the steps of their forms."""
    if not manifest.language:
        return "match as they are written"
    language = "in no language" if manifest.language == NONE else f"in {manifest.language}"
    return f"match their forms {language}: {', '.join(manifest.forms)}"


def _lines(
    location: str,
    manifest: Manifest,
    statistics: Statistics,
    deletions: Deletions,
    verified: list[str],
) -> list[str]:
    serves = "chunks and sentences" if manifest.has_sentences else "chunks"
    if "exact" in manifest.without:
        serves += ", no keyword search"
    folded = manifest.fold_characters
    chunking = f"cut at {manifest.chunk_tokens:,} tokens"
    if manifest.already_chunked:
        chunking = "as given (pre-chunked)"
    parts: list[tuple[str, Part]] = [("chunk", statistics.chunks)]
    if statistics.sentences is not None:
        parts.append(("sentence", statistics.sentences))
    lines = [
        f"Index {location}",
        f"  built        {manifest.created} from {', '.join(manifest.sources)} "
        f"({manifest.source_format})",
        f"  holds        {counted(manifest.documents, 'document')}, "
        f"{counted(manifest.chunks, 'passage')} ({chunking}), "
        f"{counted(manifest.sentences, 'sentence')}, {counted(manifest.tokens, 'token')}",
        f"  words        {_words_of(manifest)}",
        f"  lines        {f'folded at {folded:,} characters' if folded else 'as in the source'}",
        f"  serves       {serves}; fields {manifest.query_schema.describe()}",
        f"  titles       {'yes' if manifest.has_titles else 'none: title: finds nothing'}",
        f"  ranking      BM25, k1 {manifest.k1:g}, b {manifest.b:g}; {manifest.analyser} analyser",
        f"  engine       {manifest.engine} {manifest.engine_version}, "
        f"format {manifest.format_version}, update {manifest.update}",
        f"  fingerprint  {manifest.fingerprint}",
        f"  placement    {manifest.placement}",
    ]
    for name, part in parts:
        share = part.deleted / max(part.documents + part.deleted, 1)
        deleted = f", {share:.1%} deleted" if part.deleted else ""
        lines.append(
            f"  on disk      {name} index: {part.bytes:,} bytes in {_pieces(part)}, "
            f"{counted(part.segments, 'segment')}{deleted}"
        )
    if manifest.skipped_lines:
        lines.append(f"  left out     {counted(manifest.skipped_lines, 'bad line')}")
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
    if verified:
        lines.append(f"  verified     {_verified_words(verified)}")
    return lines


def _verified_words(verified: Sequence[str]) -> str:
    *others, last = verified
    checked = f"{', '.join(others)} and {last} agree" if others else f"{last} agree"
    return checked if others else f"{checked}; --checksums reads passages, vectors and files too"


def _pieces(part: Part) -> str:
    """Return the number of files of a folder, or of shards on a server."""
    if isinstance(part, PartStatistics):
        return counted(part.files, "file")
    return counted(part.shards, "shard")


# The description of an index's vectors in arag-search info


class DescribedSidecar(NamedTuple):
    """A sidecar as JSON and in words, and whether it is free of problems."""

    json: dict[str, Any]
    text: str
    is_sound: bool


def described_sidecars(
    opened: Index, vectors: str | None, checksums: bool
) -> list[DescribedSidecar]:
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
    return [
        _damaged(path, sidecar.what)
        if isinstance(sidecar, VectorsError)
        else _described(path, sidecar, fitting, checksums)
        for path, sidecar in sidecars(root)
    ]


def _damaged(path: Path, why: str) -> DescribedSidecar:
    content = {"folder": str(path), "fits": False, "error": why}
    return DescribedSidecar(content, f"{path}: damaged: {why}", False)


def _described(
    path: Path, sidecar: VectorManifest, fitting: FittingSidecar | None, checksums: bool
) -> DescribedSidecar:
    check = check_contents if checksums else check_sizes
    try:
        check(sidecar.files_in(path), "")
    except VectorsError as error:
        return _damaged(path, f"{error.what} ({error.where})")
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
    return DescribedSidecar(content, text, True)
