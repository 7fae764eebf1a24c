"""A session in a process of its own: it answers one search per line, on a bare Lucene index or on
an index of ours.

    python session_worker.py lucene FOLDER JVM READER JAR...
    python session_worker.py python INDEX

For Lucene it imports JPype and the standard library alone, and a search is a compiled query; for an
index of ours, it is the arguments of ``Index.logical_search``.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

Search = Callable[[Any], int]
"""Runs a search, reads its hits and returns their number."""

TOP_K = 5


def lucene(folder: str, jvm: str, reader: str, *jars: str) -> Search:
    """Open a Lucene index, whose hits have names alone."""
    import jpype as untyped

    jpype: Any = untyped
    jpype.startJVM(
        *("-XX:+UseSerialGC", "-Xlog:disable", "--enable-native-access=ALL-UNNAMED"),
        jvmpath=jvm,
        classpath=list(jars),
    )
    path = jpype.JClass("java.nio.file.Paths").get(folder)
    directory = jpype.JClass("org.apache.lucene.store.FSDirectory").open(path)
    opened = jpype.JClass("org.apache.lucene.index.DirectoryReader").open(directory)
    searcher = jpype.JClass("org.apache.lucene.search.IndexSearcher")(opened)
    read, fields = jpype.JClass(reader).read, searcher.storedFields()

    def search(query: Any) -> int:
        documents = [
            fields.document(hit.doc) for hit in searcher.search(read(query), TOP_K).scoreDocs
        ]
        return len([[str(field.stringValue()) for field in document] for document in documents])

    return search


def python(location: str) -> Search:
    """Open an index of ours."""
    import arag_search

    index = arag_search.open_index(location)
    return lambda arguments: len(index.logical_search(**arguments).hits)


def main() -> None:
    """Answer until there are no more lines."""
    kind, *arguments = sys.argv[1:]
    search = lucene(*arguments) if kind == "lucene" else python(*arguments)
    print("open", flush=True)
    for line in sys.stdin:
        print(search(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
