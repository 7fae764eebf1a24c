"""Reporting why a job ended early, and what running the same command again will do."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from arag_search.errors import BuildError, EngineError, WorkerLostError
from arag_search.system.durable import FULL_DISK

_FULL_REASONS = ("No space left", "File too large", "quota exceeded")


@contextmanager
def resume_advice(outlook: Callable[[], str], note: Callable[[str], None]) -> Generator[None]:
    """Report how to resume after Ctrl-C and after the loss of a worker.

    ``outlook`` says what running the same command again does, such as "it starts over".
    """
    try:
        yield
    except KeyboardInterrupt:
        note(f"Stopped. Run the same command again: {outlook()}.")
        raise
    except WorkerLostError as error:
        error.do += f" Run the same command again: {outlook()}."
        raise


@contextmanager
def room(where: str, outlook: Callable[[], str], what: str = "index") -> Generator[None]:
    """Turn a full disk, a quota or a file-size limit into a BuildError; ``what`` names the files
    being written."""
    try:
        yield
    except (OSError, BuildError, EngineError) as error:
        reason = _full_reason(error)
        if reason is None and not isinstance(error, OSError):
            raise
        if reason is None:
            raise BuildError(f"The {what} cannot be written ({error}).", where=where) from error
        raise BuildError(
            f"There is no space left to write the {what} ({reason}).",
            where=where,
            do=f"Free some space and run the same command again: {outlook()}.",
        ) from error


def _full_reason(error: Exception) -> str | None:
    if isinstance(error, OSError):
        return error.strerror if error.errno in FULL_DISK else None
    return next((reason for reason in _FULL_REASONS if reason in str(error)), None)
