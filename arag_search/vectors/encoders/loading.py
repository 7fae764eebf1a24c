"""Loading a sentence-transformers model onto a device, silently and completely."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, EncoderFilesError
from arag_search.system.processes import share_cores

AUTO_DEVICE = "auto"
_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub")
_UNUSED_WEIGHTS = (
    "pooler"  # a head that many models are saved without, and that vectors do not depend on
)


def load_model(folder: Path, device: str) -> Any:
    """Load the SentenceTransformer in a folder: half precision on CUDA, otherwise single.

    Uses no network, runs no code from the folder, and writes nothing to stderr. Raises
    EncoderFilesError if the model cannot be loaded, or if weights are missing, which the library
    would replace with random ones.
    """
    with _quiet() as messages:
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
    with _quiet():
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
    with _quiet():
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
def _quiet() -> Generator[list[str]]:
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
