"""The vectors of an index that is updated: if they fit it before, they fit it afterwards."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.corpus import Chunk
from arag_search.errors import (
    AragError,
    VectorsDamagedError,
    VectorsNotNamedError,
    VectorsVersionError,
)
from arag_search.manifest import Manifest
from arag_search.system.extras import check_extra
from arag_search.system.progress import Progress, counted
from arag_search.vectors.base import (
    KEY_BYTES,
    Encoder,
    VectorUnit,
    check_same_encoder,
    check_same_model,
    row_key,
    rows_of,
)
from arag_search.vectors.folder import (
    embed_command,
    fitting_state,
    lock,
    remove_unused,
    states,
    store_of,
    vectors_root,
)
from arag_search.vectors.records import StateRecord, state_path
from index_jobs.embedding.encoding import EncoderChoice
from index_jobs.embedding.options import EmbedOptions

if TYPE_CHECKING:
    from arag_search.vectors.state import State
    from arag_search.vectors.store import Store

PIECE_ROWS = EmbedOptions().piece_rows
"""How many texts are encoded at once."""

FOUND_TEXTS = 8 * PIECE_ROWS
"""How many texts are looked for at once: each time all keys of the store are read."""


class VectorUpdate:
    """The vectors of an index during one update.

    Added texts are encoded before the index publishes them, and the state of the new placement is
    written just before, so that vectors and index change at once. The next update finds the rows
    that an interrupted one has encoded.
    """

    def __init__(
        self,
        location: str,
        vectors: Path | str | None,
        placement: str,
        *,
        embeds: bool,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Find the vectors of the index, which has this placement before the update. Vectors that
        do not fit it then are left alone. ``check`` is called between texts that are encoded, and
        may raise. Raises MissingExtraError."""
        self._location = location
        self._embeds = embeds
        self._check = check
        self._root: Path | None = None
        self._state: State | None = None
        self._encoding: tuple[Encoder, Store] | None = None
        self._opened = ExitStack()
        self._waiting: dict[VectorUnit, list[tuple[int, str]]] = {}
        self._added: dict[VectorUnit, tuple[array[int], array[int]]] = {}
        self._encoded_rows = 0
        try:
            self._root = vectors_root(location, vectors)
            if state_path(self._root, placement).exists():
                check_extra("vectors", "numpy")
                self._state = fitting_state(self._root, placement)
        except (VectorsNotNamedError, VectorsDamagedError, VectorsVersionError):
            pass  # those that cannot be read do not fit

    def add(self, chunks: Sequence[Chunk], progress: Progress) -> None:
        """Give the texts of chunks, which follow those before, their rows. The first call locks the
        folder, and opens the encoder that made the vectors. Raises what opening it raises,
        VectorsMismatchError if it has changed, VectorsLockedError, and what encoding raises."""
        if self._state is None or not self._embeds:
            return
        _, store = self._encoding = self._encoding or self._open(progress)
        for chunk in chunks:
            for unit in self._state.units:
                waiting = self._waiting.setdefault(unit, [])
                waiting += rows_of(chunk, unit, sentence_titles=store.record.sentence_titles)
                if len(waiting) >= FOUND_TEXTS:
                    self._give_rows(unit)

    def before_publishing(self, after: Manifest, deleted: Sequence[int], *, grows: bool) -> None:
        """Write the state of the index ``after`` the update, without the chunks with these
        ordinals. If it ``grows`` and nothing may be encoded, no vectors will fit it. Raises what
        encoding raises, OSError."""
        state = self._state
        if self._root is None or state is None or (grows and not self._embeds):
            return
        import numpy as np

        from arag_search.vectors.state import State, UnitTexts

        for unit in self._waiting:
            self._give_rows(unit)
        added: dict[VectorUnit, UnitTexts] = {
            unit: UnitTexts(np.array(ordinals), np.array(rows))
            for unit, (ordinals, rows) in self._added.items()
        }
        while True:
            rows: dict[VectorUnit, int] = {
                unit: record.rows if self._encoding is None else self._encoding[1].rows(unit)
                for unit, record in state.record.units.items()
            }
            State.write(
                self._root,
                placement=after.placement,
                fingerprint=after.fingerprint,
                chunks=after.chunks,
                store=state.record.store,
                units=state.changed(deleted, added),
                store_rows=rows,
                before=state.record.placement,
            )
            now = fitting_state(self._root, state.record.placement)
            if now is None or now.record.store == state.record.store:
                return
            state = now  # a job that left out dead rows has moved the others meanwhile

    def published(self, placement: str) -> None:
        """Remove what the index, which has this placement now, no longer needs."""
        if self._root is not None and self._state is not None:
            removed = None if self._encoding is None else ()
            remove_unused(self._root, self._location, placement, stores=removed)

    def close(self) -> None:
        """Close the encoder, and unlock the folder."""
        self._opened.close()

    def described(self, placement: str) -> str:
        """Describe the vectors of the index, which has this placement now; return an empty text if
        it has none."""
        known = [] if self._root is None else states(self._root)
        if self._root is None or not known:
            return ""
        path = state_path(self._root, placement)
        fits = any(own == path and isinstance(record, StateRecord) for own, record in known)
        if not fits:
            return f"no vectors fit the index until: {self._command}"
        rows = f"; {counted(self._encoded_rows, 'row')} encoded" if self._encoded_rows else ""
        return f"the vectors fit the index{rows}"

    def _open(self, progress: Progress) -> tuple[Encoder, Store]:
        """Lock the folder, and open store and encoder until ``close``."""
        from arag_search.vectors.state import State

        assert self._root is not None
        assert self._state is not None
        try:
            self._opened.enter_context(lock(self._root))
            # Whoever held the lock before may have moved the rows.
            self._state = State.open(self._state.path)
            store = store_of(self._root, self._state)
            made_by, where = store.record.encoder, str(store.folder)
            progress.note(
                f"Loading the encoder {made_by.name}, which made the vectors of the index."
            )
            encoder = EncoderChoice.of(made_by, EmbedOptions()).open()
            self._opened.callback(encoder.close)
            check_same_encoder(made_by, encoder.identity, where)
            check_same_model(store.record.probes, encoder, where)
        except AragError as error:
            error.do = (
                f"{error.do} Or update the index without its vectors: --no-embed; searches by"
                f" vectors then need {self._command}."
            ).strip()
            raise
        return encoder, store

    def _give_rows(self, unit: VectorUnit) -> None:
        """Find the rows of the waiting texts, and encode those that have none."""
        import numpy as np

        assert self._encoding is not None
        encoder, store = self._encoding
        texts, self._waiting[unit] = self._waiting[unit], []
        keys = [row_key(text) for _, text in texts]
        stored = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)
        rows = dict(zip(keys, store.find(unit, stored).tolist(), strict=True))
        missing = {key: text for key, (_, text) in zip(keys, texts, strict=True) if rows[key] < 0}
        unknown = list(missing)
        for start in range(0, len(unknown), PIECE_ROWS):
            new = unknown[start : start + PIECE_ROWS]
            cut = encoder.cut_texts
            vectors = encoder.encode([missing[key] for key in new])
            first = store.append(unit, new, vectors, encoder.cut_texts - cut)
            rows.update(zip(new, range(first, first + len(new)), strict=True))
            self._encoded_rows += len(new)
            self._check()
        added = self._added.setdefault(unit, (array("q"), array("q")))
        added[0].extend(ordinal for ordinal, _ in texts)
        added[1].extend(rows[key] for key in keys)

    @property
    def _command(self) -> str:
        return "" if self._root is None else embed_command(self._location, self._root)
