"""The options and the report of an embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from arag_search.errors import ArgumentError
from arag_search.system.progress import counted, duration
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity, VectorUnit
from arag_search.vectors.encoders.sentence_transformer import GPU_BATCH_SIZE
from arag_search.vectors.folder import RefusedTexts, StoredType
from index_jobs.build.options import MAX_WORKERS
from index_jobs.build.report import Report

ENCODER_OPTIONS = ("device", "batch_size", "query_prefix", "document_prefix")
"""Those that are options of encoders."""

BATCHES_A_PIECE = 32
"""How many encoder batches are encoded at once: enough that sorting the texts by length is
worthwhile, few enough that the workers finish at about the same time, and little is lost."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """The options of an embedding.

    ``vectors`` is the folder of the vectors (None: see ``vectors_root``). ``units`` are those that
    must have vectors; others keep theirs. ``index`` is "auto", "flat" or a FAISS factory.
    ``workers`` is the number of encoding processes; 0 encodes in this process. With ``ray``, the
    address of a Ray cluster (see ``Cluster``), they work there (None: one for each GPU, or else for
    each machine). If ``device`` or ``batch_size`` is None, the encoder chooses it; ``query_prefix``
    and ``document_prefix`` are as in ``open_encoder``. With ``sentence_titles``, sentences are
    encoded below the title of their passage. ``dtype`` and ``sentence_titles`` None are as in
    existing vectors by the same encoder, else float32 and yes. ``overwrite`` makes all vectors
    again, which allows other options than those of existing vectors. Raises ArgumentError.
    """

    vectors: Path | str | None = None
    units: tuple[VectorUnit, ...] = VECTOR_UNITS
    index: str = "auto"
    dtype: StoredType | None = None
    workers: int | None = None
    batch_size: int | None = None
    device: str | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    sentence_titles: bool | None = None
    overwrite: bool = False
    ray: str | None = None

    @property
    def piece_rows(self) -> int:
        """How many rows are encoded and stored at once."""
        return (self.batch_size or GPU_BATCH_SIZE) * BATCHES_A_PIECE

    def __post_init__(self) -> None:
        if not 0 <= (self.workers or 0) <= MAX_WORKERS:
            raise ArgumentError(
                f"--workers: {self.workers} is out of range.", allowed=f"0 to {MAX_WORKERS}"
            )
        if self.dtype not in (None, *get_args(StoredType)):
            raise ArgumentError(
                f'--dtype: "{self.dtype}" is not known.', allowed=", ".join(get_args(StoredType))
            )
        if not self.units or set(self.units) - set(VECTOR_UNITS):
            raise ArgumentError(
                f"--unit: {', '.join(self.units) or 'none'} is not known.",
                allowed="both, sentence, passage",
            )


@dataclass(frozen=True, slots=True)
class EmbedReport(Report):
    """The vectors of an index, and what this run did for them.

    ``state`` is the file that says which text has which row of the folder ``store``. ``texts``
    counts the texts with a vector, ``rows`` the rows of the store, by unit; equal texts share a
    row. ``dead_rows`` are of no text any more, ``cut_texts`` were longer than the encoder reads,
    and ``refused`` ones have no vector. This run encoded ``encoded_rows`` in ``encode_seconds`` of
    ``seconds``; ``reused_rows`` had been encoded before. ``bytes`` is the size on disk.
    ``up_to_date`` is true if the vectors existed and nothing was done.
    """

    location: str
    state: str
    store: str
    encoder: EncoderIdentity
    index: Mapping[VectorUnit, str]
    dtype: str
    texts: Mapping[VectorUnit, int]
    rows: Mapping[VectorUnit, int]
    dead_rows: Mapping[VectorUnit, int]
    cut_texts: Mapping[VectorUnit, int]
    refused: RefusedTexts
    bytes: int
    up_to_date: bool
    encoded_rows: int
    reused_rows: int
    encode_seconds: float
    seconds: float
    notes: tuple[str, ...]

    def to_text(self) -> str:
        verb = "Nothing to do for" if self.up_to_date else "Embedded"
        texts = " and ".join(counted(count, unit) for unit, count in self.texts.items())
        lines = [
            f"{verb} {self.location}: vectors of {texts}, {self.bytes / 1e6:,.1f} MB in"
            f" {self.store}.",
            f"encoder: {self.encoder.name}, {self.encoder.dimension:,} dimensions; {self.dtype};"
            f" index {', '.join(dict.fromkeys(self.index.values()))}",
        ]
        if not self.up_to_date:
            speed = self.encoded_rows / max(self.encode_seconds, 1e-3)
            lines.append(
                f"encoded: {counted(self.encoded_rows, 'row')} in {duration(self.encode_seconds)},"
                f" {speed:,.0f}/s; all in {duration(self.seconds)}"
            )
        if self.reused_rows:
            lines.append(f"reused: {counted(self.reused_rows, 'row')} of earlier vectors")
        if cut := sum(self.cut_texts.values()):
            lines.append(f"cut: {counted(cut, 'text')} longer than the encoder reads")
        if self.refused.count:
            lines.append(f"{self.refused}; the same command asks for them again")
        return "\n".join([*lines, *self.notes])
