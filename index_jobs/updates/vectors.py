"""The vectors of an index that is updated: if they fit it before, they fit it afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from arag_search.errors import AragError, VectorsError, VectorsNotNamedError
from arag_search.system.extras import check_extra
from arag_search.system.progress import Progress, counted
from arag_search.vectors.base import VECTOR_UNITS, Encoder, check_same_encoder
from arag_search.vectors.faiss_index import MOST_FLAT_ROWS
from arag_search.vectors.storage.folders import (
    FittingSidecar,
    embed_command,
    fitting_sidecar,
    growing_sidecar,
    mark_growth,
    sidecars,
    vectors_root,
    write_deletions,
)
from arag_search.vectors.storage.manifest import FLAT
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.making import EncoderChoice
from index_jobs.embedding.plan import EmbedOptions


class VectorUpdate:
    """The vectors of an index during one update.

    Deletions are recorded before the index publishes them, so that both change at once. Added
    passages are encoded once they are published; until then no vectors fit the index. If that is
    interrupted, the next update encodes them.
    """

    def __init__(
        self, location: str, vectors: Path | str | None, placement: str, *, embeds: bool
    ) -> None:
        """Find the vectors of the index before the update, which has this placement. Vectors that
        do not fit it then are left alone. Raises MissingExtraError."""
        self._location = location
        self._embeds = embeds
        self._encoder: Encoder | None = None
        self._root: Path | None = None
        self._sidecar: FittingSidecar | None = None
        self._fits = False
        try:
            self._root = vectors_root(location, vectors)
            self._sidecar = fitting_sidecar(self._root, placement)
            self._fits = self._sidecar is not None
            self._sidecar = self._sidecar or growing_sidecar(self._root, placement)
        except VectorsNotNamedError:
            return
        except VectorsError:
            pass  # they cannot be read, and so do not fit
        if self._sidecar is not None:
            check_extra("vectors", "numpy")

    def prepare(self, progress: Progress) -> None:
        """Open the encoder that made the vectors, before passages are added. Raises what opening it
        raises, VectorsMismatchError if it has changed."""
        if self._sidecar is None or not self._embeds or self._encoder is not None:
            return
        made_by = self._sidecar.manifest.encoder
        progress.note(f"Loading the encoder {made_by.name}, which made the vectors of the index.")
        try:
            self._encoder = EncoderChoice.of(made_by, None, None).open()
            check_same_encoder(made_by, self._encoder.identity, str(self._sidecar.path))
        except AragError as error:
            error.do = (
                f"{error.do} Or update the index without its vectors: --no-embed; searches by"
                f" vectors then need {self._command}."
            ).strip()
            raise

    def before_publishing(self, placement: str, deleted: Sequence[int], *, grows: bool) -> None:
        """Record what the update, which leads to a new placement, means for the vectors: the
        ordinals of the ``deleted`` chunks, or that chunks are added. Raises OSError."""
        if self._sidecar is None:
            return
        if self._fits and not grows:
            write_deletions(self._sidecar, deleted, placement)
        elif self._embeds or not self._fits:
            mark_growth(self._sidecar.path, placement)
            self._fits = False

    def embed(self, progress: Progress) -> int:
        """Encode the passages without vectors, and return how many rows were encoded. Raises what
        ``embed_index`` raises."""
        if self._sidecar is None or self._root is None or self._fits or not self._embeds:
            return 0
        self.prepare(progress)
        manifest = self._sidecar.manifest
        is_flat = max(manifest.rows.values()) >= MOST_FLAT_ROWS and set(
            manifest.index.values()
        ) == {FLAT}
        options = EmbedOptions(
            vectors=self._root,
            units=tuple(unit for unit in VECTOR_UNITS if unit in manifest.units),
            index=FLAT if is_flat else "auto",
            dtype=manifest.dtype,
            sentence_titles=manifest.sentence_titles,
        )
        try:
            return embed_index(self._location, self._encoder, options, progress).encoded_rows
        except BaseException:
            progress.note(
                "The index is updated, but no vectors fit it yet. Run the same command again, or:"
                f" {self._command}"
            )
            raise

    def close(self) -> None:
        """Close the encoder."""
        if self._encoder is not None:
            self._encoder.close()

    def described(self, placement: str, encoded_rows: int = 0) -> str:
        """Describe the vectors of the index, which has this placement now; return an empty text if
        it has none."""
        if self._root is None or not any(True for _ in sidecars(self._root)):
            return ""
        try:
            fits = fitting_sidecar(self._root, placement) is not None
        except VectorsError:
            fits = False
        if not fits:
            return f"no vectors fit the index until: {self._command}"
        rows = f"; {counted(encoded_rows, 'row')} encoded" if encoded_rows else ""
        return f"the vectors fit the index{rows}"

    @property
    def _command(self) -> str:
        return "" if self._root is None else embed_command(self._location, self._root)
