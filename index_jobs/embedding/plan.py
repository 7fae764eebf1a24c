"""The options of an embedding, and the plan that decides whether an interrupted one is resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast, get_args

from arag_search.errors import ArgumentError
from arag_search.system.durable import write_atomically
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity, VectorUnit
from arag_search.vectors.encoders.sentence_transformer import DEFAULT_BATCH_SIZE
from arag_search.vectors.storage.records import VECTORS_VERSION
from arag_search.vectors.storage.shards import StoredType
from index_jobs.build.options import MAX_WORKERS
from index_jobs.embedding.shards import finished_shards

DEFAULT_SHARD_ROWS = 50_000
MAX_SHARD_ROWS = 10_000_000
MAX_BATCH_SIZE = 8_192
BATCHES_A_PIECE = 32
"""How many encoder batches are encoded at once: enough that sorting the texts by length is
worthwhile, few enough that the workers finish at about the same time."""

_PROGRAM = "the program"
TITLES = "--sentence-titles"
PLAN = "plan.json"
ROWS_VERSION = 1
"""The version of the code that cuts shards and makes rows. An interrupted embedding of another
version cannot be resumed."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """The options of an embedding.

    ``vectors`` is the folder of the sidecars (None: see ``vectors_root``). ``index`` is "auto",
    "flat" or a FAISS factory. A shard has at most ``shard_rows`` rows of both units together, and
    never splits a passage. ``workers`` is the number of encoding processes; 0 encodes in this
    process. With ``ray``, they are workers of the cluster (None: as many as the cluster allows).
    If ``device`` or ``batch_size`` is None, the encoder chooses it. With ``sentence_titles``,
    sentences are encoded below the title of their passage (None: as in existing vectors, else yes).
    Existing vectors with the same encoder and dtype are reused. ``overwrite`` makes all vectors
    again; it also replaces existing vectors and an interrupted embedding with another plan.
    ``only_missing`` states that only new texts are expected to need vectors. Raises ArgumentError.
    """

    vectors: Path | str | None = None
    units: tuple[VectorUnit, ...] = VECTOR_UNITS
    index: str = "auto"
    shard_rows: int = DEFAULT_SHARD_ROWS
    dtype: StoredType = "float32"
    workers: int | None = None
    batch_size: int | None = None
    device: str | None = None
    sentence_titles: bool | None = None
    only_missing: bool = False
    overwrite: bool = False
    ray: bool = False

    @property
    def piece_rows(self) -> int:
        """How many rows are encoded at once."""
        return (self.batch_size or DEFAULT_BATCH_SIZE) * BATCHES_A_PIECE

    def __post_init__(self) -> None:
        for option, value, low, high in (
            ("--shard-size", self.shard_rows, 1, MAX_SHARD_ROWS),
            ("--batch-size", 1 if self.batch_size is None else self.batch_size, 1, MAX_BATCH_SIZE),
            ("--workers", self.workers or 0, 0, MAX_WORKERS),
        ):
            if not low <= value <= high:
                raise ArgumentError(
                    f"{option}: {value:,} is out of range.",
                    allowed=f"{low} to {high:,}",
                )
        if self.dtype not in get_args(StoredType):
            raise ArgumentError(
                f'--dtype: "{self.dtype}" is not known.', allowed=", ".join(get_args(StoredType))
            )
        if not self.units or set(self.units) - set(VECTOR_UNITS):
            raise ArgumentError(
                f"--unit: {', '.join(self.units) or 'none'} is not known.",
                allowed="both, sentence, passage",
            )
        if not self.index.strip():
            raise ArgumentError(
                "--index: the description is empty.", allowed="auto, flat, or a FAISS factory"
            )
        if self.only_missing and self.overwrite:
            raise ArgumentError(
                "--only-missing and --overwrite are both given.",
                allowed="one of them",
                do="Leave out --overwrite to embed what is missing, --only-missing to embed all.",
            )


def chosen_titles(options: EmbedOptions, existing: bool | None) -> bool:
    """Return whether sentences are encoded below their titles: as the options say, else as in
    existing vectors, else yes (better on real questions: bench/studies/retrieval.md)."""
    if options.sentence_titles is not None:
        return options.sentence_titles
    return True if existing is None else existing


@dataclass(frozen=True, slots=True)
class Plan:
    """The properties that the shards of an interrupted embedding must share with the new ones.

    The plan does not list the texts: each shard does."""

    encoder: EncoderIdentity
    units: tuple[VectorUnit, ...]
    dtype: StoredType
    sentence_titles: bool = False

    def named(self) -> dict[str, Any]:
        """Return the plan by the names of its options, in the form in which JSON restores it."""
        named = {
            "--encoder": asdict(self.encoder),
            "--unit": self.units,
            "--dtype": self.dtype,
            _PROGRAM: [VECTORS_VERSION, ROWS_VERSION],
            TITLES: self.sentence_titles,
        }
        return json.loads(json.dumps(named))


def begin(work: Path, plan: Plan, *, overwrite: bool) -> str:
    """Prepare the folder ``work`` for a plan; keep its shards if they were made with the same plan.

    Returns why the work starts over, or an empty text if it does not. Raises ArgumentError if the
    folder holds shards of another plan, unless ``overwrite`` allows removing them or only the
    version of the program differs; OSError.
    """
    path = work / PLAN
    why = ""
    if work.exists():
        before, now = _read(path), plan.named()
        changed = _changes(before, now)
        if not changed:
            return ""
        if finished_shards(work):
            why = f"an interrupted embedding is there, with other settings: {changed}"
            has_other_options = _changes(before, {**now, _PROGRAM: before.get(_PROGRAM)})
            if has_other_options and not overwrite:
                raise ArgumentError(
                    f"A{why[1:]}.",
                    where=str(work),
                    allowed="the same options as before",
                    do="Give them to finish it, or --overwrite to start over.",
                )
        shutil.rmtree(work)
    work.mkdir(parents=True)
    write_atomically(path, json.dumps(plan.named()).encode())
    return why


def is_like(work: Path, identity: EncoderIdentity, options: EmbedOptions) -> bool:
    """Return whether the work in ``work`` makes the vectors that the options specify, however it
    divides them into shards."""
    before = _read(work / PLAN)
    now = Plan(identity, options.units, options.dtype).named()
    return all(before.get(name) == now[name] for name in ("--encoder", "--unit", "--dtype"))


def planned_titles(work: Path) -> bool | None:
    """Return whether an interrupted embedding that has finished shards encodes titles; None if
    there is no such embedding."""
    before = _read(work / PLAN)
    return bool(before.get(TITLES, False)) if before and finished_shards(work) else None


def planned_encoder(work: Path) -> EncoderIdentity | None:
    """Return the encoder of an interrupted embedding that has finished shards, or None."""
    planned: Any = _read(work / PLAN).get("--encoder")
    if not isinstance(planned, dict) or not finished_shards(work):
        return None
    try:
        return EncoderIdentity(**cast("dict[str, Any]", planned))
    except TypeError:
        return None  # of another version, which cannot be resumed


def _read(path: Path) -> Mapping[str, Any]:
    try:
        values: Any = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        values = None
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe what differs; return an empty text if nothing does."""
    if not before:
        return "its plan cannot be read"
    return "; ".join(
        f"{name} was {_shown(was)}, is {_shown(value)}"
        for name, value in now.items()
        if (was := before.get(name, False if name == TITLES else None)) != value
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        values = cast("dict[str, Any]", value)
        return f"{values.get('name')} (revision {str(values.get('revision'))[:12] or 'unknown'})"
    return json.dumps(value)
