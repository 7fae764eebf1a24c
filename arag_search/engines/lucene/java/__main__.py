"""Rebuild the jar from the sources: ``python -m arag_search.engines.lucene.java``."""

from __future__ import annotations

import sys

from arag_search.engines.lucene.java.jar import rebuilt
from arag_search.engines.lucene.jvm import CLASSES_JAR
from arag_search.errors import AragError
from arag_search.system.durable import write_atomically


def main() -> int:
    """Write the jar into this folder and print its path. Return the exit code."""
    try:
        data = rebuilt()
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    write_atomically(CLASSES_JAR, data)
    print(CLASSES_JAR)
    return 0


if __name__ == "__main__":
    sys.exit(main())
