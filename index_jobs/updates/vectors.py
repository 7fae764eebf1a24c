"""The vectors of an index that is updated: if they fit it before, they fit it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.corpus import Chunk
from arag_search.errors import (
    AragError,
    VectorsDamagedError,
    VectorsError,
    VectorsNotNamedError,
    VectorsVersionError,
)
from arag_search.manifest import Manifest
from arag_search.system.extras import check_extra
from arag_search.system.progress import Progress, counted
from arag_search.vectors.base import Encoder, check_same_encoder
from arag_search.vectors.folder import (
    RefusedTexts,
    StateRecord,
    embed_command,
    left_behind,
    owner_of,
    remove_unused,
    state_path,
    states,
    unnamed_stores,
    vectors_root,
    writing,
)
from index_jobs.embedding.encoding import Encoding, TextRows
from index_jobs.embedding.options import EmbedOptions

if TYPE_CHECKING:
    from arag_search.vectors.state import State


class VectorUpdate:
    """The vectors of an index during one update.

    Added texts are encoded before the index publishes them. The state of the new placement is
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
        encoder: Encoder | str | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Find the vectors of the index, which has this placement before the update. Vectors that
        do not fit it then are left alone. ``encoder`` is as in AddOptions. ``check`` is called
        between texts that are encoded, and may raise. Raises MissingExtraError."""
        self._location = location
        self._embeds = embeds
        self._encoder = encoder
        self._check = check
        self._root: Path | None = None
        self._state: State | None = None
        self._rows: TextRows | None = None
        self._opened = ExitStack()
        try:
            self._root = vectors_root(location, vectors)
            if state_path(self._root, placement).exists():
                check_extra("vectors", "numpy")
                from arag_search.vectors.state import fitting_state

                self._state = fitting_state(self._root, placement)
        except (VectorsNotNamedError, VectorsDamagedError, VectorsVersionError):
            pass  # those that cannot be read do not fit

    def add(self, chunks: Sequence[Chunk], progress: Progress) -> None:
        """Give the texts of chunks, which follow those before, their rows. The first call locks the
        folder, and opens the encoder that made the vectors. Raises what opening it raises,
        VectorsMismatchError if it has changed, VectorsLockedError, and what encoding raises."""
        if self._state is None or not self._embeds:
            return
        rows = self._rows = self._rows or self._open(progress)
        for chunk in chunks:
            rows.add(chunk)

    def before_publishing(self, after: Manifest, deleted: Sequence[int], *, grows: bool) -> None:
        """Write the state of the index ``after`` the update, without the chunks with these
        ordinals. If it ``grows`` and nothing may be encoded, no vectors will fit it. Raises what
        encoding raises, OSError."""
        state = self._state
        if self._root is None or state is None or (grows and not self._embeds):
            return
        from arag_search.vectors.state import State, fitting_state

        added = {} if self._rows is None else self._rows.finish()
        while True:
            State.write(
                self._root,
                after,
                state.record.store,
                state.changed(deleted, added),
                before=state.record.placement,
                owner=owner_of(self._location, self._root),
                refused=state.record.refused + self._refused,
            )
            now = fitting_state(self._root, state.record.placement)
            if now is None or now.record.store == state.record.store:
                return
            state = now  # a job that left out dead rows has moved the others meanwhile

    def published(self, placement: str) -> None:
        """Remove what the index, which has this placement now, no longer needs."""
        if self._root is None or self._state is None:
            return
        with suppress(OSError, VectorsError):  # the next update removes what stays
            kept = unnamed_stores(self._root)
            left = left_behind(self._root, self._location, placement)
            remove_unused(self._root, left, None if self._rows is None else kept)

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
        encoded = 0 if self._rows is None else self._rows.encoded
        rows = f"; {counted(encoded, 'row')} encoded" if encoded else ""
        again = f"; {self._refused}; {self._command} asks again" if self._refused.count else ""
        return f"the vectors fit the index{rows}{again}"

    @property
    def _refused(self) -> RefusedTexts:
        return RefusedTexts() if self._rows is None else self._rows.refused

    def _open(self, progress: Progress) -> TextRows:
        """Lock the folder, and open store and encoder until ``close``."""
        from arag_search.vectors.state import State

        assert self._root is not None
        assert self._state is not None
        try:
            self._opened.enter_context(writing(self._root))
            # Whoever held the lock before may have moved the rows.
            self._state = State.open(self._state.path)
            store = self._state.store()
            made_by, where = store.record.encoder, str(store.folder)
            progress.note(
                f"Loading the encoder {made_by.name}, which made the vectors of the index."
            )
            encoding = Encoding(self._encoder or made_by, EmbedOptions())
            self._opened.enter_context(encoding)
            kept, now = store.record.probes, encoding.probes
            check_same_encoder(made_by, kept, encoding.identity, now, where)
        except AragError as error:
            error.do = (
                f"{error.do} Or update the index without its vectors: `embed=False`; searches by"
                f" vectors then need {self._command}."
            ).strip()
            raise
        return TextRows(
            self._state.units,
            encoding,
            store,
            lambda: store,
            sentence_titles=store.record.sentence_titles,
            on_piece=lambda _done, _encoded: self._check(),
        )

    @property
    def _command(self) -> str:
        return "" if self._root is None else embed_command(self._location, self._root)
