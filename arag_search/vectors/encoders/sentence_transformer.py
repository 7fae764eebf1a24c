"""SentenceTransformerEncoder: models that run in this process."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, EncoderFilesError, EncoderUnavailableError
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.vectors.base import EncoderIdentity
from arag_search.vectors.encoders.known_models import prefixes_of
from arag_search.vectors.encoders.model_files import hub_folder, local_folder, revision_of
from arag_search.vectors.encoders.prefixed import PrefixedEncoder, Task

DEFAULT_BATCH_SIZE = 64
CPU_BATCH_SIZE = 16
"""The batch size on a CPU. On two cores, it was measured to encode a third more sentences and a
quarter more passages per second than 64."""
AUTO_DEVICE = "auto"
_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub", "torch.onnx")
_UNUSED_WEIGHTS = (
    "pooler"  # a head that many models are saved without, and that vectors do not depend on
)
MOST_TOKENS = 10**7  # above it a model has no bound; tokenizers say 1e30


class SentenceTransformerEncoder(PrefixedEncoder):
    """A model of sentence-transformers, by folder, installed package, or name on the hub.

    The prefixes are those of ``prefixes_of``. Texts are cut to the model's length, and encoded in
    batches of ``batch_size`` sorted by length (None: CPU_BATCH_SIZE or DEFAULT_BATCH_SIZE).
    ``dimension`` keeps the first numbers of a vector, for models trained for that.

    ``device`` is "auto" (CUDA if available, otherwise the processor) or as torch names it. On CUDA
    the model works in half precision, elsewhere in single, so that vectors of two devices differ by
    about 1e-3. ``threads`` limits those of torch, for the whole process, and of the tokenizer,
    unless that was used before; None is at most the cores that this process may use. Calls from
    several threads take turns.

    Raises MissingExtraError, EncoderNotFoundError, EncoderAccessError, EncoderFilesError, and
    ArgumentError. No code in the model's folder is run.
    """

    def __init__(
        self,
        name: str,
        *,
        device: str | None = None,
        batch_size: int | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        dimension: int | None = None,
        threads: int | None = None,
    ) -> None:
        check_counts(batch_size=batch_size, threads=threads)
        check_extra("semantic", "sentence-transformers", "sentence_transformers")
        folder = local_folder(name) or hub_folder(name)
        revision = revision_of(folder)
        bound_threads(threads)
        self.folder = folder
        self._lock = threading.Lock()
        where = f"encoder {name}"
        chosen = usable_device(device)
        self._batch_size = batch_size or (CPU_BATCH_SIZE if chosen == "cpu" else DEFAULT_BATCH_SIZE)
        self._model: Any = load_model(folder, chosen)
        full = int(self._encoded(["a"]).shape[1])
        query, document = prefixes_of(name, self._model.prompts, query_prefix, document_prefix)
        super().__init__(query, document, where)
        bound = self._model.max_seq_length
        self._identity = EncoderIdentity(
            kind="sentence-transformers",
            name=name,
            revision=revision,
            dimension=kept_dimension(dimension, full, where),
            max_tokens=int(bound) if bound and bound < MOST_TOKENS else None,
            query_prefix=query,
            document_prefix=document,
        )

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder."""
        return self._identity

    @property
    def model(self) -> Any:
        """The SentenceTransformer; None once closed."""
        return self._model

    def close(self) -> None:
        """Free the model; the encoder cannot be used afterwards."""
        with self._lock:
            self._model = None

    def _rows(self, texts: list[str], task: Task) -> tuple[Any, int]:
        prefix = self._prefixes[task]
        with self._lock:  # a tokenizer cannot be used by two threads at once
            if self._model is None:
                raise EncoderUnavailableError("The encoder was closed.", where=self._where)
            rows = self._encoded(texts, prompt=prefix, task=task)
            return rows, self._count_longer([prefix + text for text in texts])

    def _count_longer(self, texts: list[str]) -> int:
        """Count the texts that the model cuts. Those of fewer bytes than tokens that it reads are
        none of them, so that of most sentences no token is counted."""
        bound = self._identity.max_tokens
        if bound is None:
            return 0
        tokenizer = self._model.tokenizer
        room = bound - tokenizer.num_special_tokens_to_add()
        long = [text for text in texts if len(text.encode()) > room]
        if not long:
            return 0
        ids = tokenizer(long, truncation=False, verbose=False)["input_ids"]
        return sum(len(tokens) > bound for tokens in ids)

    def _encoded(self, texts: list[str], **options: str) -> Any:
        # sentence-transformers sorts by length and puts the vectors back in order.
        return self._model.encode(
            texts,
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
            **options,
        )


def check_counts(**counts: int | None) -> None:
    """Raise ArgumentError for a count below 1; None stands for the default."""
    for option, value in counts.items():
        if value is not None and value < 1:
            raise ArgumentError(f"{option} is {value}.", allowed="1 or more")


def kept_dimension(dimension: int | None, full: int, where: str) -> int:
    """Return how many numbers of a vector are kept; None keeps all. Raises ArgumentError."""
    if dimension is not None and not 1 < dimension <= full:
        raise ArgumentError(f"dimension is {dimension}.", where=where, allowed=f"2 to {full}")
    return dimension or full


# Loading


def load_model(folder: Path, device: str) -> Any:
    """Load the SentenceTransformer in a folder: half precision on CUDA, otherwise single.

    Uses no network, runs no code from the folder, and writes nothing to stderr. Raises
    EncoderFilesError if the model cannot be loaded, or if weights are missing, which the library
    would replace with random ones.
    """
    with quiet() as messages:
        from sentence_transformers import SentenceTransformer

        open_model: Any = SentenceTransformer
        try:
            model = open_model(
                str(folder), device=device, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # whatever files may raise: JSON, torch, the tokenizer
            raise _cannot_be_loaded(folder, f"{type(error).__name__}: {_first_line(error)}") from (
                error
            )
        if missing := _missing_weights(messages):
            raise _cannot_be_loaded(folder, f"{len(missing)} weights missing: {missing[0]}")
        return model.half() if device.startswith("cuda") else model.float()


def usable_device(device: str | None) -> str:
    """Return the device as torch names it. Raises ArgumentError if it is not available."""
    with quiet():
        import torch
    if device in (None, AUTO_DEVICE):
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ArgumentError(
            f"device is {device!r}, which cannot be used: {_first_line(error)}",
            allowed=f"{AUTO_DEVICE}, cpu, cuda, or another one of torch on this machine",
        ) from error
    return str(device)


def bound_threads(threads: int | None) -> None:
    """Limit the threads of torch, and those of tokenizers that were not used before.

    None means at most the number of cores that this process may use. Idle threads sleep.
    """
    cores = share_cores()
    with quiet():
        import torch
    if threads is None:
        torch.set_num_threads(min(cores, torch.get_num_threads()))
        return
    torch.set_num_threads(threads)
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))


def _cannot_be_loaded(folder: Path, reason: str) -> EncoderFilesError:
    return EncoderFilesError(
        f"The files of the model cannot be loaded ({reason}).",
        where=str(folder),
        do="Download or install the model again. Models with code of their own are not supported.",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _missing_weights(messages: Sequence[str]) -> list[str]:
    """Return the weights that transformers reports as missing, in the table that it logs."""
    lines = (line for text in messages for line in text.splitlines())
    missing = (line.partition("|")[0].strip() for line in lines if "| MISSING" in line)
    return sorted(name for name in missing if _UNUSED_WEIGHTS not in name)


class _Collector(logging.Handler):
    """A handler that collects messages instead of showing them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def quiet() -> Generator[list[str]]:
    """Silence warnings, logs and progress bars of the libraries. Yield a list of their logs."""
    collector = _Collector()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.utils import logging as bars

        loggers = [logging.getLogger(name) for name in _LOGGERS]
        before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
        had_bars = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        for logger in loggers:
            logger.handlers, logger.propagate = [collector], False
            logger.setLevel(logging.WARNING)
        try:
            yield collector.messages
        finally:
            for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
                logger.handlers, logger.propagate = handlers, propagate
                logger.setLevel(level)
            if had_bars:
                bars.enable_progress_bar()
