"""SentenceTransformerEncoder: models that run in this process."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any, Unpack

from arag_search.errors import ArgumentError, EncoderFilesError
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.vectors.base import EncoderOptions
from arag_search.vectors.encoders.model_files import hub_folder, local_folder
from arag_search.vectors.encoders.prefixed import LocalEncoder, Prompts, Task

GPU_BATCH_SIZE = 64
CPU_BATCH_SIZE = 16
"""The batch size on a CPU. On two cores, it was measured to encode a third more sentences and a
quarter more passages per second than 64."""
AUTO_DEVICE = "auto"
_ADVICE = (
    "Download the model again (hf download MODEL) or install it again. Models with code of their "
    "own are not supported."
)
_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub", "torch.onnx")
_UNUSED_WEIGHTS = (
    "pooler"  # a head that many models are saved without, and that vectors do not depend on
)
MOST_TOKENS = 10**7  # above it a model has no bound; tokenizers say 1e30


class SentenceTransformerEncoder(LocalEncoder):
    """A model of sentence-transformers, by folder, installed package, or name on the hub.

    ``device`` is "auto" (CUDA if available, otherwise the processor) or as torch names it. On CUDA
    the model works in half precision, elsewhere in single, so that vectors of two devices differ by
    about 1e-3. Torch uses at most the cores that this process may use.

    Raises MissingExtraError, EncoderNotFoundError, EncoderFilesError and ArgumentError. No code in
    the model's folder is run.
    """

    kind = "sentence-transformers"
    advice = _ADVICE

    def __init__(self, name: str, **options: Unpack[EncoderOptions]) -> None:
        check_extra("semantic", "sentence-transformers", "sentence_transformers")
        self._lock = threading.Lock()
        super().__init__(name, local_folder(name) or hub_folder(name), options)

    def _load(self, folder: Path, options: EncoderOptions) -> tuple[Any, Prompts, int | None]:
        device = _usable(options.get("device"))
        model = _transformer_in(folder, device)
        usual = CPU_BATCH_SIZE if device == "cpu" else GPU_BATCH_SIZE
        self._batch_size = options.get("batch_size") or usual
        bound = model.max_seq_length
        return model, model.prompts, int(bound) if bound and bound < MOST_TOKENS else None

    def _encoded(self, model: Any, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        with self._lock:  # a tokenizer cannot be used by two threads at once
            # sentence-transformers sorts by length and puts the vectors back in order.
            rows = model.encode(
                texts,
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
                prompt=prefix,
                task=task,
            )
            return rows, _count_longer(model, [prefix + text for text in texts])


def _count_longer(model: Any, texts: list[str]) -> int:
    """Count the texts that a model cuts. A text with no more bytes than the model reads tokens is
    never cut, so most sentences need no tokenizer."""
    bound, tokenizer = model.max_seq_length, model.tokenizer
    if not bound or bound >= MOST_TOKENS:
        return 0
    room = bound - tokenizer.num_special_tokens_to_add()
    long = [text for text in texts if len(text.encode()) > room]
    if not long:
        return 0
    ids = tokenizer(long, truncation=False, verbose=False)["input_ids"]
    return sum(len(tokens) > bound for tokens in ids)


# Loading


def _transformer_in(folder: Path, device: str) -> Any:
    """Load the SentenceTransformer in a folder: half precision on CUDA, otherwise single.

    Uses no network, runs no code from the folder, and writes nothing to stderr. Raises
    EncoderFilesError if weights are missing, which the library would replace with random ones.
    """
    with quiet() as messages:
        from sentence_transformers import SentenceTransformer

        open_model: Any = SentenceTransformer
        model = open_model(
            str(folder), device=device, local_files_only=True, trust_remote_code=False
        )
    lines = (line for text in messages for line in text.splitlines())
    missing = (line.partition("|")[0].strip() for line in lines if "| MISSING" in line)
    if names := sorted(name for name in missing if _UNUSED_WEIGHTS not in name):
        raise EncoderFilesError(
            f"The files of the model lack {len(names)} weights: {names[0]}.",
            where=str(folder),
            do=_ADVICE,
        )
    return model.half() if device.startswith("cuda") else model.float()


def _usable(device: str | None) -> str:
    """Return the device as torch names it. torch gets at most the cores that this process may use,
    and its idle threads sleep. Raises ArgumentError for a device that is not available."""
    cores = share_cores()
    with quiet():
        import torch
    torch.set_num_threads(min(cores, torch.get_num_threads()))
    if device in (None, AUTO_DEVICE):
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ArgumentError(
            f"device is {device!r}, which cannot be used: {str(error).splitlines()[0]}",
            allowed=f"{AUTO_DEVICE}, cpu, cuda, or another one of torch on this machine",
        ) from error
    return str(device)


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
