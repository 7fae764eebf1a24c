"""arag-search info: describe an index, and verify its files."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import orjson
import typer

from arag_search.cli.options.index import Json, VectorsFolder
from arag_search.cli.options.parser import as_options
from arag_search.cli.output.printing import print_result
from arag_search.engines.base import MAX_DELETED_SHARE, deletions_of
from arag_search.engines.lucene.reader import IndexStatistics, LuceneEngine
from arag_search.engines.lucene.snapshot import PartStatistics
from arag_search.engines.open import is_folder_of_files
from arag_search.engines.opensearch.answers import ClusterStatistics
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.errors import (
    IndexDamagedError,
    IndexNotFoundError,
    IndexProblemError,
    VectorsError,
    VectorsNotNamedError,
)
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.query.lemmas import NONE
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.standing import Standing, standing_of
from arag_search.system.extras import check_extra
from arag_search.system.progress import counted
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.faiss_index import (
    AUTO,
    DUE_SHARE,
    FLAT,
    IndexRecord,
    factory_of,
    read_index,
)
from arag_search.vectors.folder import StateRecord, embed_command, states, vectors_root
from index_jobs.updates.folder_index import FolderIndex

if TYPE_CHECKING:
    from arag_search.vectors.store import Store

Statistics = IndexStatistics | ClusterStatistics


class Description(NamedTuple):
    """The description of an index or of vectors as JSON and in words, and whether it is sound."""

    json: dict[str, Any]
    text: str
    is_sound: bool


def info_command(
    index: Annotated[
        str,
        typer.Argument(
            help="The folder or address of the index, or a folder of files that was searched.",
            metavar="INDEX",
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
    """Describe an index and its vectors, and verify them.

    It prints the manifest in words, and compares counts and sizes with it. With --checksums, it
    also reads and compares every passage, every vector and every file on this machine. The line
    "verified" says what agrees. The report includes the vectors, and the share of deleted
    documents, which count in scores until arag-search compact. The exit code is 3 if there is no
    index, and 4 if it is damaged or of another format. It is 1 for damaged vectors and other
    failures.

    Examples:

    \b
      arag-search info my-index
      arag-search info my-index --checksums --json
      arag-search info notes/
      arag-search info http://localhost:9200/my-index
    """
    described = _describe(index, vectors, checksums)
    print_result(described.text, described.json, json)
    return 0 if described.is_sound else 1


def _describe(index: str, vectors: Path | None, checksums: bool) -> Description:
    """Describe and verify an index and its vectors. For a folder of files, it is the index in the
    cache. Raises the errors of opening them, and IndexDamagedError if the index differs from its
    manifest."""
    if is_folder_of_files(index):
        folder = FolderIndex.of(index)
        if not folder.exists:
            raise IndexNotFoundError(
                "This folder of files has no index yet.",
                where=index,
                do=f"The first search builds it: arag-search search {index} 'QUERY'",
            )
        try:
            return _describe(str(folder.location), vectors, checksums)
        except IndexProblemError as error:
            folder.advise(error)
            raise
    with open_index(index) as opened:
        manifest, engine = opened.manifest, opened.engine
        # Updates in a folder leave nothing unfinished.
        is_remote = isinstance(engine, OpenSearchEngine)
        unfinished = engine.unfinished_update if is_remote else ""
        condition = engine.condition() if is_remote else {}
        statistics, verified = _verified(opened, checksums, is_whole=not unfinished)
        described_vectors = _vectors(opened, vectors, checksums)
    is_sound = all(state.is_sound for state in described_vectors)
    if checksums and described_vectors and is_sound:
        verified.append("vectors")
    standing = standing_of(index)
    share = deletions_of(statistics.chunks, statistics.sentences).share
    values = {
        "location": index,
        "manifest": orjson.loads(manifest.to_json()),
        "files": dataclasses.asdict(statistics),
        "deleted_share": round(share, 6),
        "verified": verified,
        "unfinished_update": unfinished,
        "cluster": condition,
        "vectors": [state.json for state in described_vectors],
        "state": None if standing is None else dataclasses.asdict(standing) | standing.to_dict(),
    }
    advice = f"{share:.1%} deleted: scores are off until arag-search compact {index}"
    running = f"an update is running or was interrupted: {unfinished}"
    rows = [
        *_manifest_rows(manifest),
        *_part_rows(statistics),
        *condition.items(),
        ("advice", advice if share > MAX_DELETED_SHARE else ""),
        ("verified", _verified_words(verified)),
        *(() if standing is None else _standing_rows(standing)),
        ("unfinished", running if unfinished else ""),
        *(("vectors", state.text) for state in described_vectors),
    ]
    lines = [f"  {label:<13}{text}" for label, text in rows if text]
    return Description(values, "\n".join([f"Index {index}", *lines]), is_sound)


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
    """Raise IndexDamagedError if the passages or their places differ from the manifest. All
    passages are read."""
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
    """Raise IndexDamagedError if passages or sentences on disk are not as many as in the
    manifest."""
    for name, stated, part in (
        ("passages", manifest.chunks, statistics.chunks),
        ("sentences", manifest.sentences, statistics.sentences),
    ):
        if part is not None and stated != part.documents:
            raise IndexDamagedError(
                f"The manifest says {stated:,} {name}, the index holds {part.documents:,}.",
                where=where,
                do="Build the index again with --overwrite.",
            )


def _manifest_rows(manifest: Manifest) -> Iterable[tuple[str, str]]:
    serves = "passages and sentences" if manifest.has_sentences else "passages"
    if "exact" in manifest.without:
        serves += ", no keyword search"
    chunking = f"cut at {manifest.chunk_tokens:,} tokens"
    if manifest.already_chunked:
        chunking = "as given (pre-chunked)"
    words = "match as they are written"
    if manifest.language:
        language = "in no language" if manifest.language == NONE else f"in {manifest.language}"
        words = f"match their forms {language}: {', '.join(manifest.forms)}"
    ignored = ", ".join(f"{key} ({count:,})" for key, count in manifest.undeclared_metadata.items())
    skipped = manifest.skipped_lines
    return {
        "built": f"{manifest.created} from {', '.join(manifest.sources)} "
        f"({manifest.source_format})",
        "holds": f"{counted(manifest.documents, 'document')}, "
        f"{counted(manifest.chunks, 'passage')} ({chunking}), "
        f"{counted(manifest.sentences, 'sentence')}, {counted(manifest.tokens, 'token')}",
        "words": words,
        "lines": f"folded at {manifest.fold_characters:,} characters",
        "serves": f"{serves}; fields {manifest.query_schema.describe()}",
        "titles": "yes" if manifest.has_titles else "none: title: finds nothing",
        "ranking": f"BM25, k1 {manifest.k1:g}, b {manifest.b:g}; {manifest.analyser} analyser",
        "engine": f"{manifest.engine} {manifest.engine_version}, "
        f"format {manifest.format_version}, update {manifest.update}",
        "fingerprint": manifest.fingerprint,
        "placement": manifest.placement,
        "left out": counted(skipped, "bad line") if skipped else "",
        "ignored": f"metadata that --metadata does not declare: {ignored}" if ignored else "",
    }.items()


def _part_rows(statistics: Statistics) -> Iterator[tuple[str, str]]:
    for name, part in (("passage", statistics.chunks), ("sentence", statistics.sentences)):
        if part is None:
            continue
        is_folder = isinstance(part, PartStatistics)
        pieces = counted(part.files, "file") if is_folder else counted(part.shards, "shard")
        share = part.deleted / max(part.documents + part.deleted, 1)
        deleted = f", {share:.1%} deleted" if part.deleted else ""
        segments = counted(part.segments, "segment")
        yield "on disk", f"{name} index: {part.bytes:,} bytes in {pieces}, {segments}{deleted}"


def _standing_rows(standing: Standing) -> Iterator[tuple[str, str]]:
    sources = ", ".join(standing.sources) or "standard input"
    yield "up to date", f"{standing.in_step or 'never'}, with {sources}"
    yield "behind", standing.line()
    yield "problem", as_options(" ".join(standing.problem.split()))
    yield "not read", ", ".join(f"{count:,} {kind}" for kind, count in standing.not_read.items())
    for line in map(as_options, standing.left_out):
        yield "", line


def _verified_words(verified: Sequence[str]) -> str:
    if len(verified) > 1:
        return f"{', '.join(verified[:-1])} and {verified[-1]} agree"
    more = "; --checksums reads passages, vectors and files too"
    return f"{verified[0]} agree{more}" if verified else ""


# Vectors


def _vectors(opened: Index, vectors: Path | None, checksums: bool) -> list[Description]:
    """Describe the states in the folder of the vectors of an index, the newest first. Sizes of
    files are compared; with ``checksums`` everything is read."""
    try:
        root = vectors_root(opened.location, vectors)
    except VectorsNotNamedError:
        return []
    known = states(root)
    if not known:
        return []
    check_extra("vectors", "numpy")
    command = embed_command(opened.location, root)
    placement = opened.manifest.placement

    @functools.cache
    def stored(name: str) -> tuple[Store, Mapping[VectorUnit, int]]:
        # Each store is opened and verified once.
        from arag_search.vectors.state import live_rows, states_of
        from arag_search.vectors.store import Store

        store = Store.open(root / name)
        if checksums:
            store.verify()
        live = live_rows(store, [state.texts for state in states_of(root, name)])
        return store, {unit: len(rows) for unit, rows in live.items()}

    return [_state(path, record, placement, stored, checksums, command) for path, record in known]


def _state(
    path: Path,
    record: StateRecord | VectorsError,
    placement: str,
    stored: Callable[[str], tuple[Store, Mapping[VectorUnit, int]]],
    checksums: bool,
    command: str,
) -> Description:
    """Describe a state. ``stored`` returns a store by its name, with the number of its rows that
    states need; ``command`` embeds the index again."""
    from arag_search.vectors.state import State

    try:
        if isinstance(record, VectorsError):
            raise record
        state = State.open(path, is_read=checksums)
        store, live = stored(record.store)
        made: dict[VectorUnit, IndexRecord | None] = {
            unit: read_index(store.folder, unit) for unit in state.units
        }
        for index in filter(None, made.values()):
            index.check(store.folder, store.vectors("passage").dimension if checksums else 0)
    except VectorsError as error:
        why = error.what if error is record else f"{error.what} ({error.where})"
        do = error.do.replace("arag-search embed INDEX", command)
        content = {"state": str(path), "fits": False, "error": why, "do": do}
        return Description(content, f"{path}: damaged: {why} {do}", False)
    rows: dict[VectorUnit, int] = {unit: store.rows(unit) for unit in made}
    kinds: dict[VectorUnit, str] = {
        unit: index.factory if index else FLAT for unit, index in made.items()
    }
    dead = sum(count - live[unit] for unit, count in rows.items())
    tail = sum(rows[unit] - index.rows for unit, index in made.items() if index and index.file)
    total = max(1, sum(rows.values()))
    dead_share, tail_share = round(dead / total, 6), round(tail / total, 6)
    is_large = any(
        index is None and factory_of(AUTO, rows[unit], 1) != FLAT for unit, index in made.items()
    )
    is_due = is_large or max(dead_share, tail_share) > DUE_SHARE
    fits = record.placement == placement
    encoder = store.record.encoder
    cut = {unit: store.cut_texts(unit) for unit in rows}
    size = sum(file.stat().st_size for file in (path, *store.folder.iterdir()))
    content: dict[str, Any] = {
        "state": str(path),
        "store": str(store.folder),
        "fits": fits,
        "encoder": encoder.name,
        "dimension": encoder.dimension,
        "query_prefix": encoder.query_prefix,
        "document_prefix": encoder.document_prefix,
        "texts": record.texts,
        "rows": rows,
        "dead_share": dead_share,
        "tail_share": tail_share,
        "cut_texts": cut,
        "refused": dataclasses.asdict(record.refused),
        "index": kinds,
        "index_is_due": is_due,
        "dtype": store.record.dtype,
        "bytes": size,
        "created": record.created,
        "fingerprint": record.fingerprint,
        "placement": record.placement,
        "verified": "contents" if checksums else "sizes",
    }
    prefixes = f"query prefix {encoder.query_prefix!r}, document prefix {encoder.document_prefix!r}"
    parts = [
        ", ".join(counted(count, unit) for unit, count in record.texts.items()),
        f"{encoder.name}, {encoder.dimension:,} dimensions",
        prefixes if encoder.query_prefix or encoder.document_prefix else "",
        f"{', '.join(dict.fromkeys(kinds.values()))}, {store.record.dtype}, {size:,} bytes",
        f"{sum(cut.values()):,} longer than the encoder reads" if any(cut.values()) else "",
        str(record.refused),
        f"{dead_share:.1%} of the rows without a text" if dead_share else "",
        f"{tail_share:.1%} behind the index" if tail_share else "",
        f"an index of the vectors is due: {command}" if is_due else "",
        "of the index as it is" if fits else "of another state of the index, not searched",
        "all files read" if checksums else "sizes of files compared",
    ]
    return Description(content, f"{path}: {'; '.join(filter(None, parts))}", True)
