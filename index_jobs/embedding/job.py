"""Embedding an index: a text without a row in a store is encoded and appended, piece by piece. A
state says which text of the index has which row.

A job that is killed has lost at most a piece: the next one finds all other rows by the keys of
their texts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.errors import (
    ArgumentError,
    EncoderReplyError,
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
from arag_search.vectors.base import VECTOR_UNITS, Encoder, EncoderIdentity, VectorUnit, differences
from arag_search.vectors.encoders.choose import DEFAULT_ENCODER
from arag_search.vectors.faiss_index import FLAT, check_factory, read_index
from arag_search.vectors.folder import (
    RefusedTexts,
    StateRecord,
    StoreRecord,
    left_behind,
    lock,
    named_stores,
    new_store,
    states,
    stores,
    vectors_root,
    writing,
)
from index_jobs.build.corpus import explained_stops
from index_jobs.embedding.encoding import Encoding, TextRows
from index_jobs.embedding.options import EmbedOptions, EmbedReport

if TYPE_CHECKING:
    from arag_search.vectors.state import State, Texts
    from arag_search.vectors.store import Store
    from index_jobs.embedding.publishing import Published

# Modules that need numpy are imported in functions, after the extra was checked.

_MOST_ROUNDS = 3
"""How often an index is embedded that changes meanwhile; each time only new texts are encoded."""

_CHANGED = (
    "the index has changed since this began, and does not fit these vectors: run the same command"
    " again"
)


@checked
def embed_index(
    location: str | Path,
    encoder: str | Encoder | None = None,
    options: EmbedOptions | None = None,
    progress: Progress | None = None,
) -> EmbedReport:
    """Make vectors of the text of an index, and publish which text has which.

    ``encoder`` is a name that ``open_encoder`` accepts, or an open encoder if neither workers nor
    Ray are used. None chooses the encoder of the vectors that fit the index, else the encoder of
    all vectors in the folder, else the default. Texts that have a row already are not encoded, even
    if an interrupted embedding made it or the text has moved. Raises what ``open_index`` and
    ``open_encoder`` raise, MissingExtraError and ArgumentError. Raises VectorsMismatchError if
    there are vectors made with other options or by another model, and VectorsDamagedError,
    VectorsLockedError or BuildError. An index without text, or that changes meanwhile, raises
    SourceError.
    """
    check_extra("vectors", "numpy")
    options, shown = options or EmbedOptions(), progress or Progress()
    root = vectors_root(str(location), options.vectors)
    replaced = named_stores(root) if options.overwrite else set[str]()
    rounds = 1
    try:
        while (
            report := _embedded(str(location), root, encoder, options, shown, replaced)
        ).notes and rounds < _MOST_ROUNDS:
            rounds += 1
            shown.note("The index has changed meanwhile: going on with what is new.")
        return report
    finally:
        shown.end()


def _embedded(
    location: str,
    root: Path,
    encoder: str | Encoder | None,
    options: EmbedOptions,
    progress: Progress,
    replaced: Collection[str],
) -> EmbedReport:
    """Embed the index as it is now, without the rows of the ``replaced`` stores."""
    known = {path for path, _ in states(root)}  # those of updates from now on stay
    with open_index(location, search_timeout_s=None) as index, lock(root):
        placement, keeps_last = index.manifest.placement, not options.overwrite
        left = left_behind(root, index.location, placement, keeps_last=keeps_last)
        embedding = _Embedding(
            index, root, options, progress, replaced, [path for path in left if path in known]
        )
        with explained_stops(str(root), embedding.next_run, progress.note, "vectors"):
            return embedding.run(encoder)


@dataclass
class _Embedding:
    """One run of an embedding, which holds the lock of the folder ``root``; the states that were
    ``left`` behind are removed at its end."""

    index: Index
    root: Path
    options: EmbedOptions
    progress: Progress
    replaced: Collection[str]
    left: Collection[Path]
    rows: TextRows | None = None
    began: float = field(default_factory=time.monotonic)

    def next_run(self) -> str:
        """Return what the same command does after an interruption."""
        store = None if self.rows is None else self.rows.store
        rows = 0 if store is None else sum(map(store.rows, VECTOR_UNITS))
        return f"it resumes after {counted(rows, 'row')}" if rows else "it starts over"

    def run(self, encoder: str | Encoder | None) -> EmbedReport:
        """Embed, as ``embed_index`` says."""
        from index_jobs.embedding.publishing import publish

        fitting = self._fitting()
        with Encoding(self._chosen(encoder, fitting), self.options) as encoding:
            check_factory(self.options.index, encoding.identity.dimension)
            record, store = self._store(encoding, fitting)
            began = time.monotonic()
            texts: Texts | None = None
            if store is None or not _has_all(fitting, store, self.options.units):
                store, texts = self._embedded(encoding, store, record, fitting)
        encode_s = time.monotonic() - began
        published = publish(
            self.root,
            self.index.location,
            self.index.manifest,
            store,
            texts,
            fitting,
            self.left,
            faiss=self.options.index,
            all_dead=self.options.overwrite,
            progress=self.progress,
            refused=RefusedTexts() if self.rows is None else self.rows.refused,
        )
        return self._report(published, encode_s)

    # What there is

    def _fitting(self) -> State | None:
        """Return the state of the index as it is. An unreadable state is an error unless it is to
        be overwritten."""
        from arag_search.vectors.state import fitting_state

        try:
            state = fitting_state(self.root, self.index.manifest.placement)
            if state is not None:
                state.store()
            return state
        except VectorsNotFoundError:
            return None  # its rows were removed
        except (VectorsDamagedError, VectorsVersionError) as error:
            if self.options.overwrite:
                return None
            error.do = "Use `overwrite=True` to make the vectors again."
            raise

    def _chosen(
        self, encoder: str | Encoder | None, fitting: State | None
    ) -> str | Encoder | EncoderIdentity:
        """Return the given encoder, else the maker of the vectors that fit, else the maker of all
        vectors in the folder, else the default. Raises ArgumentError if several encoders made
        them."""
        made_by = {
            record.encoder
            for path, record in stores(self.root)
            if fitting is None or path.name == fitting.record.store
        }
        if encoder is None and len(made_by) > 1:
            raise ArgumentError(
                "No encoder is named, none of the vectors fit the index, and several encoders made"
                " them.",
                where=str(self.root),
                allowed=", ".join(sorted({encoder.name for encoder in made_by})),
                do="Name the one of this index with `encoder`.",
            )
        chosen = encoder or next(iter(made_by), DEFAULT_ENCODER)
        if isinstance(chosen, str | EncoderIdentity):
            name = chosen if isinstance(chosen, str) else chosen.name
            self.progress.note(f"Loading the encoder {name}.")
        return chosen

    def _continued(self, fitting: State | None) -> list[tuple[Path, StoreRecord]]:
        """Return the stores that may be continued: first the store of the state that fits, then
        stores of other states, the newest first. Last come stores of an interrupted embedding."""
        records = {path.name: (path, record) for path, record in stores(self.root)}
        named = [] if fitting is None else [fitting.record.store]
        named += [own.store for _, own in states(self.root) if isinstance(own, StateRecord)]
        names = [name for name in dict.fromkeys([*named, *records]) if name not in self.replaced]
        return [records[name] for name in names if name in records]

    def _store(self, encoding: Encoding, fitting: State | None) -> tuple[StoreRecord, Store | None]:
        """Return the record that the vectors must have, and the store to continue, if there is one.
        Options that are not given are as in existing vectors by the same encoder. Raises
        VectorsMismatchError if the vectors that fit the index are others, or another model is
        behind the encoder's name. It does not if they are to be overwritten."""
        from arag_search.vectors.store import Store

        options, known = self.options, self._continued(fitting)
        maker, probes = encoding.identity, encoding.probes
        alike = [own for _, own in known if not differences(own.encoder, own.probes, maker, probes)]
        first, titles = next(iter(alike), None), options.sentence_titles
        record = StoreRecord(
            encoder=maker,
            dtype=options.dtype or (first.dtype if first else "float32"),
            sentence_titles=(not first or first.sentence_titles) if titles is None else titles,
            probes=probes,
        )
        for path, own in known:
            is_fitting = fitting is not None and path.name == fitting.record.store
            if not (changed := own.differences(record)):
                try:
                    return record, Store.open(path)
                except VectorsError:
                    if not options.overwrite:
                        raise
            elif not options.overwrite and (
                is_fitting or (own.encoder == maker and own not in alike)
            ):
                raise VectorsMismatchError(
                    f"There are vectors made with other options, or by another model: {changed}.",
                    where=str(path),
                    allowed="the same options, which leave the vectors unchanged",
                    do="Use `overwrite=True` to replace them, or give other `vectors`.",
                )
        return record, None

    def _embedded(
        self, encoding: Encoding, store: Store | None, record: StoreRecord, fitting: State | None
    ) -> tuple[Store, Texts]:
        """Give all texts of the index a row. Raises SourceError for an index without text, or that
        has changed."""
        from arag_search.vectors.store import Store

        manifest, digest = self.index.manifest, CorpusDigest()
        kept = () if fitting is None or self.options.overwrite else fitting.units
        units: list[VectorUnit] = [
            unit for unit in VECTOR_UNITS if unit in {*kept, *self.options.units}
        ]
        rows = self.rows = TextRows(
            units,
            encoding,
            store,
            lambda: Store.create(new_store(self.root), record),
            sentence_titles=record.sentence_titles,
            writing=lambda: writing(self.root, math.inf),
            on_piece=self.progress.update,
        )
        sizes = {"sentence": manifest.sentences, "passage": manifest.chunks}
        self.progress.begin("rows encoded", sum(sizes[unit] for unit in units), 0, 0)
        for chunk in self.index.scan():
            digest.add(chunk)
            rows.add(chunk)
        texts = rows.finish()
        if fingerprint_hex(digest.placement) != manifest.placement:
            raise SourceError(
                "The index was changed while it was embedded.",
                where=self.index.location,
                do=f"Run the same command again once nothing is updating it: {self.next_run()}.",
            )
        if rows.store is None or not any(len(own.rows) for own in texts.values()):
            if rows.refused.count:
                raise EncoderReplyError(f"{rows.refused}.", where=self.index.location)
            raise SourceError(
                "The index holds no text to embed.",
                where=self.index.location,
                allowed="passages with a letter or a digit",
            )
        return rows.store, texts

    def _report(self, published: Published, encode_s: float) -> EmbedReport:
        state, store, rows = published.state, published.store, self.rows
        encoded = 0 if rows is None else rows.encoded
        live = state.live_rows
        made: dict[VectorUnit, str] = {}
        for unit in live:
            index = read_index(store.folder, unit)
            made[unit] = index.factory if index else FLAT
        return EmbedReport(
            location=self.index.location,
            state=str(state.path),
            store=str(store.folder),
            encoder=store.record.encoder,
            index=made,
            dtype=store.record.dtype,
            texts=state.record.texts,
            rows=live,
            dead_rows={unit: store.rows(unit) - live[unit] for unit in live},
            cut_texts={unit: store.cut_texts(unit) for unit in live},
            refused=state.record.refused,
            bytes=sum(path.stat().st_size for path in (state.path, *store.folder.iterdir())),
            up_to_date=not published.has_changed,
            encoded_rows=encoded,
            reused_rows=0 if rows is None else sum(live.values()) - encoded,
            encode_seconds=round(encode_s, 3),
            seconds=round(time.monotonic() - self.began, 3),
            notes=(_CHANGED,) if self.index.is_outdated() else (),
        )


def _has_all(fitting: State | None, store: Store, units: Collection[VectorUnit]) -> bool:
    """Return whether the state that fits gives all texts of these units a row of a store. False if
    a text was refused, for which the endpoint is asked again."""
    return (
        fitting is not None
        and fitting.record.store == store.folder.name
        and not fitting.record.refused.count
        and set(units) <= set(fitting.units)
    )
