"""Writers in this process that are killed, or find the disk full, at some step."""

import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_STEPS = ("write", "fsync", "replace", "rename", "mkdir", "unlink")


class Killed(BaseException):
    """The end of a process, which no writer handles."""


@contextmanager
def stopping(step: int, *, full_disk: bool) -> Generator[None]:
    """Let this call of the system fail, counted from 1; a write then writes a part of its bytes.

    The writer is killed, or, on a full disk, this call and all later writes fail.
    """
    done = 0

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            if done < step or (done > step and name != "write"):
                return original(*arguments, **options)
            if name == "write":
                original(arguments[0], arguments[1][: len(arguments[1]) // 2])
            if full_disk:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise Killed

        return call

    with patch.multiple(os, **{name: counted(name, getattr(os, name)) for name in _STEPS}):
        yield
