"""Embedding an index: texts that no row of a store has are encoded and appended piece by piece, and
a state says which text of the index has which row.

A job that is killed has lost at most a second's rows or a piece: the next one finds all others by
the keys of their texts.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from arag_search.errors import (
    AragError,
    ArgumentError,
    SourceError,
    VectorsDamagedError,
    VectorsError,
    VectorsMismatchError,
    VectorsNotFoundError,
    VectorsVersionError,
)
from arag_search.manifest import CorpusDigest, fingerprint_hex
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.arguments import checked
from arag_search.system.extras import check_extra
from arag_search.system.progress import Progress, counted
from arag_search.vectors.base import (
    KEY_BYTES,
    VECTOR_UNITS,
    Encoder,
    EncoderIdentity,
    VectorUnit,
    check_probes,
    row_key,
    rows_of,
)
from arag_search.vectors.encoders.choose import DEFAULT_ENCODER
from arag_search.vectors.faiss_index import FLAT, check_factory, read_index
from arag_search.vectors.folder import (
    fitting_state,
    is_own_root,
    lock,
    new_store,
    remove_unused,
    states,
    store_of,
    stores,
    vectors_root,
)
from arag_search.vectors.records import StateRecord, StoreRecord
from index_jobs.build.corpus import reporting_full_disk, resume_advice
from index_jobs.embedding.encoding import Encoded, Encoding, Piece
from index_jobs.embedding.options import EmbedOptions, EmbedReport
from index_jobs.workers.pool import own_peak

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arag_search.vectors.state import State, UnitTexts
    from arag_search.vectors.store import Store

Places: TypeAlias = "NDArray[np.int64]"

_STORE_S = 1.0
_MOST_PIECES = 16
"""Pieces are stored after a second, or once they are so many: a disk may take long to confirm."""

# Modules that need numpy are imported in functions, after the extra was checked.


@checked
def embed_index(
    location: str | Path,
    encoder: str | Encoder | None = None,
    options: EmbedOptions | None = None,
    progress: Progress | None = None,
) -> EmbedReport:
    """Make vectors of the text of an index, and publish which text has which.

    ``encoder`` is a name that ``open_encoder`` accepts, or an open encoder if neither workers nor
    Ray are used. None chooses the encoder of the vectors that fit the index, else that of all
    others in the folder, else the default one. Texts that have a row already are not encoded, even
    if an interrupted embedding made it or the text has moved. All rows are read, and those that are
    damaged made again. Raises what ``open_index`` and ``open_encoder`` raise, MissingExtraError,
    ArgumentError, VectorsMismatchError if there are vectors made with other options or by another
    model, VectorsLockedError, SourceError for an index that has no text or changes in the meantime,
    BuildError.
    """
    check_extra("vectors", "numpy")
    shown = progress or Progress()
    options = options or EmbedOptions()
    try:
        root = vectors_root(str(location), options.vectors)
        with open_index(location, search_timeout_s=None) as index, lock(root):
            embedding = _Embedding(index, root, options, shown)
            with (
                resume_advice(embedding.next_run, shown.note),
                reporting_full_disk(str(root), embedding.next_run, "vectors"),
            ):
                return embedding.run(encoder)
    finally:
        shown.end()


class _Texts:
    """The texts of a unit in the order of the index: ordinals, keys, and the row of each, -1 if it
    has none."""

    def __init__(self, ordinals: array[int], keys: bytearray) -> None:
        import numpy as np

        self.ordinals = np.frombuffer(ordinals, np.int64)
        self.keys = np.frombuffer(keys, np.uint8).reshape(-1, KEY_BYTES)
        self.rows = np.full(len(ordinals), -1, np.int64)

    def find(self, store: Store, unit: VectorUnit) -> int:
        """Find the rows of the texts, and return how many were found."""
        import numpy as np

        self.rows = store.find(unit, self.keys)
        return int(np.count_nonzero(np.bincount(self.rows[self.rows >= 0])))

    def missing(self) -> tuple[Places, Places]:
        """Return the places of the texts without a row, and for each the place of the first text
        with the same key, which is the one to encode."""
        import numpy as np

        places = np.flatnonzero(self.rows < 0)
        keys = np.ascontiguousarray(self.keys[places]).view(np.uint64)
        order = np.lexsort(keys.T)  # equal keys in order of place
        keys = keys[order]
        is_first = np.ones(len(keys), np.bool_)
        is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        firsts = np.empty_like(order)
        firsts[order] = order[is_first][np.cumsum(is_first) - 1]
        return places, places[firsts]


class _Embedding:
    """One run of an embedding, which holds the lock of the folder."""

    def __init__(self, index: Index, root: Path, options: EmbedOptions, progress: Progress) -> None:
        self._began = time.monotonic()
        self._index = index
        self._root = root
        self._options = options
        self._progress = progress
        self._encoded_rows = self._reused_rows = self._damaged_rows = 0

    def next_run(self) -> str:
        """Return what the same command does after an interruption."""
        rows = self._encoded_rows + self._reused_rows
        return f"it resumes after {counted(rows, 'row')}" if rows else "it starts over"

    def run(self, encoder: str | Encoder | None) -> EmbedReport:
        """See ``embed_index``."""
        from index_jobs.embedding.publishing import Publication

        index, options = self._index, self._options
        fitting = self._fitting()
        began = time.monotonic()
        with Encoding(self._chosen(encoder, fitting), options) as encoding:
            record = self._record(encoding, fitting)
            check_factory(options.index, record.encoder.dimension)
            store = self._existing(encoding, record, fitting)
            texts = None if store is None else self._known(store, fitting)
            is_new = texts is None
            if store is None or texts is None:
                began = time.monotonic()
                store, texts = self._embedded(encoding, store, record, fitting)
        encode_s = time.monotonic() - began
        publication = Publication(
            self._root, index.location, index.manifest, self._progress, all_dead=options.overwrite
        )
        state, store = publication.publish(
            store, texts, fitting, is_new=is_new, faiss=options.index
        )
        if options.overwrite and is_own_root(index.location, self._root):
            known_stores = [path.name for path, _ in stores(self._root)]
            remove_unused(self._root, index.location, index.manifest.placement, stores=known_stores)
        is_same = not publication.has_changed
        publish_s = time.monotonic() - began - encode_s
        return self._report(state, store, encoding, encode_s, publish_s, up_to_date=is_same)

    # What there is

    def _fitting(self) -> State | None:
        """Return the state of the index as it is. One that cannot be read is an error unless it is
        to be overwritten."""
        try:
            state = fitting_state(self._root, self._index.manifest.placement)
            if state is not None:
                store_of(self._root, state)
            return state
        except VectorsNotFoundError:
            return None  # its rows were removed
        except (VectorsDamagedError, VectorsVersionError) as error:
            if self._options.overwrite:
                return None
            error.do = "Use --overwrite to make the vectors again."
            raise

    def _chosen(
        self, encoder: str | Encoder | None, fitting: State | None
    ) -> str | Encoder | EncoderIdentity:
        """Return the encoder that is given, else that of the vectors that fit, else that of all in
        the folder, else the default. Raises ArgumentError if several made these."""
        records = stores(self._root)
        if fitting is not None:
            own = [record for path, record in records if path.name == fitting.record.store]
            made_by = {record.encoder for record in own}
        else:
            made_by = {record.encoder for _, record in records}
        if encoder is None and len(made_by) > 1:
            raise ArgumentError(
                "No encoder is named, none of the vectors fit the index, and several encoders made"
                " them.",
                where=str(self._root),
                allowed=", ".join(sorted({encoder.name for encoder in made_by})),
                do="Name the one of this index with --encoder.",
            )
        chosen = encoder or next(iter(made_by), None)
        if chosen is None:
            chosen = DEFAULT_ENCODER
            self._progress.note(
                f"There are no vectors in {self._root} yet: loading the default encoder {chosen}."
            )
        elif isinstance(chosen, str | EncoderIdentity):
            name = chosen if isinstance(chosen, str) else chosen.name
            self._progress.note(f"Loading the encoder {name}.")
        return chosen

    def _ordered(self, fitting: State | None) -> list[tuple[Path, StoreRecord]]:
        """Return the stores that may be continued: that of the state that fits, those of other
        states, the newest first, and those that an interrupted embedding has left. With
        ``overwrite`` only the latter."""
        named = [] if fitting is None else [fitting.record.store]
        named += [r.store for _, r in states(self._root) if isinstance(r, StateRecord)]
        records = {path.name: (path, record) for path, record in stores(self._root)}
        unnamed = [name for name in records if name not in named]
        wanted = unnamed if self._options.overwrite else [*dict.fromkeys(named), *unnamed]
        return [records[name] for name in wanted if name in records]

    def _record(self, encoding: Encoding, fitting: State | None) -> StoreRecord:
        """Return the record that the vectors must have: options that are not given are as in
        existing vectors by the same encoder. Raises VectorsMismatchError if those that fit the
        index are others, unless they are to be overwritten."""
        options, encoder = self._options, encoding.identity
        records = [record for _, record in self._ordered(fitting)]
        alike = next((record for record in records if record.encoder == encoder), None)
        titles = alike is None or alike.sentence_titles
        dtype = "float32" if alike is None else alike.dtype
        wanted = StoreRecord(
            encoder=encoder,
            dtype=options.dtype or dtype,
            sentence_titles=titles if options.sentence_titles is None else options.sentence_titles,
            probes=encoding.probes[0],
        )
        if fitting is None or options.overwrite:
            return wanted
        if changed := _changes(records[0], wanted):
            raise VectorsMismatchError(
                f"This index has vectors made with other options: {changed}.",
                where=str(fitting.path),
                allowed="the same options, which leave the vectors unchanged",
                do="Use --overwrite to replace them, or give another --vectors.",
            )
        return wanted

    def _existing(
        self, encoding: Encoding, record: StoreRecord, fitting: State | None
    ) -> Store | None:
        """Open the store to continue, after its damaged rows were dropped; None if there is none.
        Raises VectorsMismatchError if another model has made it."""
        from arag_search.vectors.store import Store

        for path, known in self._ordered(fitting):
            if not known.is_like(record):
                continue
            try:
                store = Store.open(path)
                for probes in encoding.probes:
                    check_probes(known.probes, probes, record.encoder.name, str(path))
            except VectorsError:
                if self._options.overwrite:
                    continue
                raise
            for block in store.damaged(self._progress):
                self._progress.note(
                    f"{block.rows:,} {block.unit} rows of {path} are damaged, and their texts are"
                    " being encoded again."
                )
                self._damaged_rows += block.rows
                store.drop(block)
            return store
        return None

    def _known(self, store: Store, fitting: State | None) -> Mapping[VectorUnit, UnitTexts] | None:
        """Return the rows of the texts of the index if the state that fits has them all."""
        from index_jobs.embedding.publishing import texts_of

        if (
            fitting is None
            or fitting.record.store != store.folder.name
            or set(self._options.units) - set(fitting.units)
        ):
            return None
        texts = texts_of(fitting)
        is_sound = all(store.sound(unit)[own.rows].all() for unit, own in texts.items())
        return texts if is_sound else None

    # Encoding

    def _embedded(
        self,
        encoding: Encoding,
        store: Store | None,
        record: StoreRecord,
        fitting: State | None,
    ) -> tuple[Store, Mapping[VectorUnit, UnitTexts]]:
        """Give all texts a row; encode those that have none."""
        from arag_search.vectors.state import UnitTexts
        from arag_search.vectors.store import Store

        kept = () if fitting is None or self._options.overwrite else fitting.units
        units: list[VectorUnit] = [
            unit for unit in VECTOR_UNITS if unit in {*kept, *self._options.units}
        ]
        texts = self._read(units, record)
        if store is not None:
            self._reused_rows = sum(own.find(store, unit) for unit, own in texts.items())
        missing: dict[VectorUnit, tuple[Places, Places]] = {
            unit: own.missing() for unit, own in texts.items()
        }
        total = sum(len(own.rows) for own in texts.values())
        if reused := total - sum(len(places) for places, _ in missing.values()):
            self._progress.note(f"Reusing the vectors of {reused:,} of {total:,} texts.")
        waiting: list[tuple[Piece, Encoded]] = []
        stored_s = time.monotonic()
        try:
            for encoded in encoding.encoded(self._pieces(texts, missing, record)):
                store = store or Store.create(new_store(self._root), record)
                waiting.append(encoded)
                done = self._encoded_rows + sum(len(piece.places) for piece, _ in waiting)
                self._progress.update(done, done)
                if len(waiting) == _MOST_PIECES or time.monotonic() - stored_s >= _STORE_S:
                    self._store(store, texts, waiting)
                    stored_s = time.monotonic()
        finally:
            if store is not None:
                self._store(store, texts, waiting)
        for unit, (places, firsts) in missing.items():
            texts[unit].rows[places] = texts[unit].rows[firsts]
        assert store is not None
        return store, {unit: UnitTexts(own.ordinals, own.rows) for unit, own in texts.items()}

    def _store(
        self,
        store: Store,
        texts: Mapping[VectorUnit, _Texts],
        waiting: list[tuple[Piece, Encoded]],
    ) -> None:
        """Append the rows of the waiting pieces, and forget these."""
        import numpy as np

        for unit in VECTOR_UNITS:
            own = [(piece, encoded) for piece, encoded in waiting if piece.unit == unit]
            if not own:
                continue
            places = [place for piece, _ in own for place in piece.places]
            vectors = np.concatenate([encoded.vectors for _, encoded in own])
            keys = [texts[unit].keys[place].tobytes() for place in places]
            first = store.append(unit, keys, vectors, sum(encoded.cut for _, encoded in own))
            waiting[:] = [result for result in waiting if result[0].unit != unit]
            texts[unit].rows[places] = range(first, first + len(places))
            self._encoded_rows += len(places)

    def _read(self, units: Sequence[VectorUnit], record: StoreRecord) -> dict[VectorUnit, _Texts]:
        """Read the whole index. Raises SourceError for one without text, or that has changed."""
        manifest, digest = self._index.manifest, CorpusDigest()
        read: dict[VectorUnit, tuple[array[int], bytearray]] = {
            unit: (array("q"), bytearray()) for unit in units
        }
        for number, chunk in enumerate(self._index.scan()):
            digest.add(chunk)
            for unit, (ordinals, keys) in read.items():
                for ordinal, text in rows_of(chunk, unit, sentence_titles=record.sentence_titles):
                    ordinals.append(ordinal)
                    keys += row_key(text)
            if number % 1_000 == 0:
                self._progress.stage("reading passages", number, manifest.chunks)
        if fingerprint_hex(digest.placement) != manifest.placement:
            raise self._changed()
        if not any(ordinals for ordinals, _ in read.values()):
            raise SourceError(
                "The index holds no text to embed.",
                where=self._index.location,
                allowed="passages with a letter or a digit",
            )
        return {unit: _Texts(*own) for unit, own in read.items()}

    def _pieces(
        self,
        texts: Mapping[VectorUnit, _Texts],
        missing: Mapping[VectorUnit, tuple[Places, Places]],
        record: StoreRecord,
    ) -> Iterator[Piece]:
        """Read the index again, and yield each text that is to be encoded once. Raises SourceError
        if a text is not as it was."""
        import numpy as np

        is_wanted = {unit: np.zeros(len(own.rows), np.bool_) for unit, own in texts.items()}
        for unit, (_, firsts) in missing.items():
            is_wanted[unit][firsts] = True
        left = sum(int(np.count_nonzero(mask)) for mask in is_wanted.values())
        self._progress.begin("rows encoded", left, 0, 0)
        places = dict.fromkeys(texts, -1)
        waiting: dict[VectorUnit, list[tuple[int, str]]] = {unit: [] for unit in texts}
        for chunk in self._index.scan() if left else ():
            for unit, own in texts.items():
                for _, text in rows_of(chunk, unit, sentence_titles=record.sentence_titles):
                    place = places[unit] = places[unit] + 1
                    if place >= len(own.keys) or own.keys[place].tobytes() != row_key(text):
                        raise self._changed()
                    if is_wanted[unit][place]:
                        waiting[unit].append((place, text))
                if len(waiting[unit]) >= self._options.piece_rows:
                    yield _piece(unit, waiting)
        for unit in texts:
            if waiting[unit]:
                yield _piece(unit, waiting)
        if left and any(places[unit] + 1 < len(own.keys) for unit, own in texts.items()):
            raise self._changed()

    def _changed(self) -> SourceError:
        return SourceError(
            "The index was changed while it was embedded.",
            where=self._index.location,
            do=f"Run the same command again once nothing is updating it: {self.next_run()}.",
        )

    # The report

    def _notes(self) -> tuple[str, ...]:
        """Return a note for the report if the index has changed since it was opened."""
        try:
            with open_index(self._index.location, search_timeout_s=None) as reopened:
                is_same = reopened.manifest.placement == self._index.manifest.placement
        except AragError as error:
            return (f"could not check whether the index has changed in the meantime: {error.what}",)
        changed = (
            "the index has changed since this began, and does not fit these vectors: run the same"
            " command again"
        )
        return () if is_same else (changed,)

    def _report(
        self,
        state: State,
        store: Store,
        encoding: Encoding,
        encode_s: float,
        publish_s: float,
        *,
        up_to_date: bool,
    ) -> EmbedReport:
        live = state.live_rows
        index: dict[VectorUnit, str] = {}
        for unit in state.units:
            made = read_index(store.folder, unit)
            index[unit] = FLAT if made is None else made.factory
        own = own_peak()
        memory = {**encoding.peaks, own.process: own}
        return EmbedReport(
            location=self._index.location,
            state=str(state.path),
            store=str(store.folder),
            encoder=store.record.encoder,
            index=index,
            dtype=store.record.dtype,
            texts=state.record.texts,
            rows=live,
            dead_rows={unit: store.rows(unit) - live[unit] for unit in live},
            cut_texts={unit: store.cut_texts(unit) for unit in live},
            chunks=state.record.chunks,
            bytes=sum(path.stat().st_size for path in (state.path, *store.folder.iterdir())),
            fingerprint=state.record.fingerprint,
            placement=state.record.placement,
            up_to_date=up_to_date,
            encoded_rows=self._encoded_rows,
            reused_rows=self._reused_rows,
            damaged_rows=self._damaged_rows,
            encode_seconds=round(encode_s, 3),
            rows_per_second=round(self._encoded_rows / max(encode_s, 1e-3), 1),
            publish_seconds=round(publish_s, 3),
            seconds=round(time.monotonic() - self._began, 3),
            workers=self._options.workers or 0,
            ray=self._options.ray,
            processes=len(memory),
            peak_bytes=sum(peak.bytes for peak in memory.values()),
            notes=self._notes(),
        )


def _piece(unit: VectorUnit, waiting: dict[VectorUnit, list[tuple[int, str]]]) -> Piece:
    places, texts = zip(*waiting[unit], strict=True)
    waiting[unit] = []
    return Piece(unit, places, texts)


def _changes(before: StoreRecord, now: StoreRecord) -> str:
    """Describe how records differ, by the names of options; return an empty text if they do not."""
    was, encoder = before.encoder, now.encoder
    pairs = (
        ("--query-prefix", repr(was.query_prefix), repr(encoder.query_prefix)),
        ("--document-prefix", repr(was.document_prefix), repr(encoder.document_prefix)),
        ("--dtype", before.dtype, now.dtype),
        ("--sentence-titles", before.sentence_titles, now.sentence_titles),
    )
    changed = [f"{name} was {old}, is {new}" for name, old, new in pairs if old != new]
    if encoder != was:
        changed.insert(0, f"--encoder was {_shown(was)}, is {_shown(encoder)}")
    return "; ".join(changed)


def _shown(encoder: EncoderIdentity) -> str:
    return f"{encoder.name} (revision {encoder.revision[:12] or 'unknown'})"
