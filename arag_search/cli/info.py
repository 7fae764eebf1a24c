"""arag-search info: describe an index, and verify its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
    IndexProblemError,
    VectorsError,
    VectorsNotNamedError,
)
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.query.lemmas import NONE
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.standing import standing_of
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
        try:
            return _describe(str(folder.location), vectors, checksums)
        except IndexProblemError as error:
            folder.advise(error)
            raise
    with open_index(index) as opened:
        manifest, engine = opened.manifest, opened.engine
        # Updates in a folder leave nothing unfinished.
        unfinished = engine.unfinished_update if isinstance(engine, OpenSearchEngine) else ""
        statistics, verified = _verified(opened, checksums, is_whole=not unfinished)
        described_vectors = _vectors(opened, vectors, checksums)
    is_sound = all(state.is_sound for state in described_vectors)
    if checksums and described_vectors and is_sound:
        verified.append("vectors")
    standing = standing_of(index)
    state = None if standing is None else dataclasses.asdict(standing) | standing.to_dict()
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
        "vectors": [state.json for state in described_vectors],
        "state": state,
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
    if standing is not None:
        in_step = f"{standing.in_step or 'never'}, with {', '.join(standing.sources)}"
        lines.append(_line("in step", in_step))
        if line := standing.line():
            lines.append(_line("not in step", line))
        if standing.problem:
            lines.append(_line("problem", " ".join(standing.problem.split())))
        if standing.not_read:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in standing.not_read.items())
            lines.append(_line("not read", kinds))
        lines += [_line("", line) for line in standing.left_out]
    if unfinished:
        running = f"an update is running or was interrupted: {unfinished}"
        lines.append(_line("unfinished", running))
    lines += [_line("vectors", state.text) for state in described_vectors]
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
    described = _Stores(root, checksums=checksums)
    command = embed_command(opened.location, root)
    placement = opened.manifest.placement
    return [_state(path, record, placement, described, command) for path, record in known]


class _Stores:
    """The stores in a folder, each opened and verified once."""

    def __init__(self, root: Path, *, checksums: bool) -> None:
        self.checksums = checksums
        self._root = root
        self._open: dict[str, tuple[Store, dict[VectorUnit, int]]] = {}

    def open(self, name: str) -> tuple[Store, dict[VectorUnit, int]]:
        """Return a store, and how many of its rows no state in the folder needs. Raises
        VectorsDamagedError and what ``Store.open`` raises."""
        from arag_search.vectors.state import live_rows, states_of
        from arag_search.vectors.store import Store

        if name in self._open:
            return self._open[name]
        store = Store.open(self._root / name)
        if self.checksums:
            store.verify()
        live = live_rows(store, [state.texts for state in states_of(self._root, name)])
        dead: dict[VectorUnit, int] = {
            unit: store.rows(unit) - len(rows) for unit, rows in live.items()
        }
        self._open[name] = store, dead
        return self._open[name]


def _state(
    path: Path,
    record: StateRecord | VectorsError,
    placement: str,
    stores: _Stores,
    command: str,
) -> Description:
    """Describe a state; ``command`` embeds the index again."""
    from arag_search.vectors.state import State

    try:
        if isinstance(record, VectorsError):
            raise record
        state = State.open(path, is_read=stores.checksums)
        store, dead = stores.open(record.store)
        made: dict[VectorUnit, IndexRecord | None] = {
            unit: read_index(store.folder, unit) for unit in state.units
        }
        for index in filter(None, made.values()):
            index.check(store.folder, store.vectors("passage").dimension if stores.checksums else 0)
    except VectorsError as error:
        why = error.what if error is record else f"{error.what} ({error.where})"
        do = error.do.replace("arag-search embed INDEX", command)
        content = {"state": str(path), "fits": False, "error": why, "do": do}
        return Description(content, f"{path}: damaged: {why} {do}", False)
    rows: dict[VectorUnit, int] = {unit: store.rows(unit) for unit in state.units}
    tails: dict[VectorUnit, int] = {
        unit: rows[unit] - index.rows if index and index.file else 0 for unit, index in made.items()
    }
    kinds: dict[VectorUnit, str] = {
        unit: index.factory if index else FLAT for unit, index in made.items()
    }
    dead_share, tail_share = (
        round(sum(part[unit] for unit in rows) / max(1, sum(rows.values())), 6)
        for part in (dead, tails)
    )
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
        "index": kinds,
        "index_is_due": is_due,
        "dtype": store.record.dtype,
        "bytes": size,
        "created": record.created,
        "fingerprint": record.fingerprint,
        "placement": record.placement,
        "verified": "contents" if stores.checksums else "sizes",
    }
    prefixes = f"query prefix {encoder.query_prefix!r}, document prefix {encoder.document_prefix!r}"
    parts = [
        ", ".join(counted(count, unit) for unit, count in record.texts.items()),
        f"{encoder.name}, {encoder.dimension:,} dimensions",
        prefixes if encoder.query_prefix or encoder.document_prefix else "",
        f"{', '.join(dict.fromkeys(kinds.values()))}, {store.record.dtype}, {size:,} bytes",
        f"{sum(cut.values()):,} longer than the encoder reads" if any(cut.values()) else "",
        f"{dead_share:.1%} of the rows without a text" if dead_share else "",
        f"{tail_share:.1%} behind the index" if tail_share else "",
        f"an index of the vectors is due: {command}" if is_due else "",
        "of the index as it is" if fits else "of another state of the index, not searched",
        "all files read" if stores.checksums else "sizes of files compared",
    ]
    return Description(content, f"{path}: {'; '.join(filter(None, parts))}", True)
