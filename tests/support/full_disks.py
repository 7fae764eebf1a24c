"""Files that cannot grow, as on a full disk."""

import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def small_files(limit: int) -> Generator[None]:
    """Let no file of this process grow beyond ``limit`` bytes during the block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    wrote_bytecode, sys.dont_write_bytecode = not sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = not wrote_bytecode
