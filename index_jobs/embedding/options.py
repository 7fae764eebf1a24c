"""The options and the report of an embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from arag_search.system.options import check, option
from arag_search.system.progress import counted, duration
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity, VectorUnit
from arag_search.vectors.encoders.sentence_transformer import GPU_BATCH_SIZE
from arag_search.vectors.folder import RefusedTexts, StoredType
from index_jobs.build.options import MAX_WORKERS, RAY_HELP
from index_jobs.build.report import Report

ENCODER_OPTIONS = ("device", "batch_size", "query_prefix", "document_prefix")
"""The fields of EmbedOptions that are options of encoders."""

BATCHES_A_PIECE = 32
"""How many encoder batches are encoded at once. They are enough for a worthwhile sort by length.
They are few enough for workers to finish at about the same time, and for a small loss."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """The options of encoding, each said at its field.

    ``batch_size``: the number of texts that are encoded at once. None: the encoder chooses it.
    Raises ArgumentError for a value that is not allowed.
    """

    vectors: Path | str | None = option(
        None,
        "The folder to keep the vectors in; an index on a server needs one.  [default:"
        " ARAG_VECTORS, else INDEX/vectors]",
        "DIR",
    )
    unit: Literal["both", "sentence", "passage"] = option(
        "both", "What gets a vector: sentences, passages, or both."
    )
    index: str = option(
        "auto",
        "How vectors are searched: flat (exact), a FAISS factory such as IVF4096,PQ64, or auto:"
        " flat below a million rows.",
        "auto|flat|FACTORY",
    )
    dtype: StoredType | None = option(
        None, "How vectors are stored.  [default: as the existing vectors, else float32]"
    )
    workers: int | None = option(
        None,
        "Encoder processes, each with the model and a share of the cores; 0 encodes in this"
        " process.  [default: 0; with --ray one per GPU, else one per machine]",
        "N",
        0,
        MAX_WORKERS,
    )
    sentence_titles: bool | None = option(
        None,
        "Encode each sentence below the title of its passage.  [default: as in the existing"
        " vectors, else with titles]",
    )
    device: str | None = option(
        None,
        "Where the model runs: cpu, cuda, cuda:1, ...  [default: a GPU if there is one]",
        "NAME",
    )
    batch_size: int | None = option(None, least=1)
    query_prefix: str | None = option(
        None, "Text put directly before each query.  [default: the model's]", "TEXT"
    )
    document_prefix: str | None = option(
        None, "Text put directly before each sentence and passage.  [default: the model's]", "TEXT"
    )
    overwrite: bool = option(
        False, "Encode everything again, and replace existing vectors, also by other options."
    )
    ray: str | None = option(None, RAY_HELP, "ADDRESS")

    @property
    def units(self) -> tuple[VectorUnit, ...]:
        """What gets a vector."""
        return VECTOR_UNITS if self.unit == "both" else (self.unit,)

    @property
    def piece_rows(self) -> int:
        """How many rows are encoded and stored at once."""
        return (self.batch_size or GPU_BATCH_SIZE) * BATCHES_A_PIECE

    def __post_init__(self) -> None:
        check(self)


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
