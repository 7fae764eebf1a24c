"""Loading a sentence-transformers model onto a device, in silence, and whole or not at all."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, EncoderFilesError
from arag_search.system.cores import share_cores

AUTO_DEVICE = "auto"
_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub")
_UNUSED_WEIGHTS = "pooler"  # a head that many models are saved without, and no vector is made by


def load_model(folder: Path, device: str) -> Any:
    """The SentenceTransformer in a folder: half precision on CUDA, else single.

    Uses no network, runs no code of the folder, and writes nothing to stderr. Raises
    EncoderFilesError where it cannot be loaded, or where weights are missing, for which the
    library would take random ones.
    """
    with _quiet() as said:
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
        if missing := _missing_weights(said):
            raise _cannot_be_loaded(folder, f"{len(missing)} weights missing: {missing[0]}")
        return model.half() if device.startswith("cuda") else model.float()


def usable_device(device: str | None) -> str:
    """The device as torch names it. Raises ArgumentError for one that is not there."""
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
    """Bound the threads of torch, and those of tokenizers that were not used before.

    None is at most the cores that this process may use. Idle threads sleep.
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
        do="Fetch or install the model again; one that needs code of its own is not run.",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _missing_weights(said: Sequence[str]) -> list[str]:
    """The weights that transformers reports as missing, in the table it logs."""
    lines = (line for text in said for line in text.splitlines())
    missing = (line.partition("|")[0].strip() for line in lines if "| MISSING" in line)
    return sorted(name for name in missing if _UNUSED_WEIGHTS not in name)


class _Kept(logging.Handler):
    """Keeps what is logged instead of showing it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextlib.contextmanager
def _quiet() -> Generator[list[str]]:
    """No warnings, logs and progress bars of the libraries; what they log is in the list."""
    kept = _Kept()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.utils import logging as bars

        loggers = [logging.getLogger(name) for name in _LOGGERS]
        before = [(one.handlers, one.propagate, one.level) for one in loggers]
        had_bars = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        for one in loggers:
            one.handlers, one.propagate = [kept], False
            one.setLevel(logging.WARNING)
        try:
            yield kept.said
        finally:
            for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
                one.handlers, one.propagate = handlers, propagate
                one.setLevel(level)
            if had_bars:
                bars.enable_progress_bar()
