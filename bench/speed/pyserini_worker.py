"""Pyserini behind a pipe: one request per line in JSON, one answer per line. Runs in any
interpreter that has pyserini, so it imports only that and the standard library. Java and its
loggers write to stdout, so the answers have a descriptor of their own, and other output to stdout
goes to stderr.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from types import ModuleType


class NoLists(ModuleType):
    """A module in which every list is empty."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return {}


class Worker:
    """An index to build and search, with its queries."""

    def hello(self):
        """Return versions of pyserini and of its Java."""
        from pyserini.pyclass import autoclass

        java = autoclass("java.lang.System").getProperty("java.version")
        return f"{version('pyserini')}, Java {java}"

    def build(self, source, folder):
        """Index JSON lines of id and contents, with blanks between words."""
        from pyserini.index.lucene import LuceneIndexer

        indexer = LuceneIndexer(args=["-index", folder, "-pretokenized"], threads=1)
        with open(source, encoding="utf-8") as lines:
            for line in lines:
                indexer.add_doc_raw(line)
        indexer.close()

    def open(self, folder, queries, k1, b):
        """Open an index, and keep the queries; how many documents it has."""
        from pyserini.analysis import JWhiteSpaceAnalyzer
        from pyserini.search.lucene import LuceneSearcher

        self.searcher = LuceneSearcher(folder)
        self.searcher.set_analyzer(JWhiteSpaceAnalyzer())
        self.searcher.set_bm25(k1, b)
        self.queries = queries
        return self.searcher.num_docs

    def play(self, clients, top_k):
        """Run all queries once in ``clients`` threads; return the seconds of all, and of each."""
        latencies = []

        def timed(query):
            began = time.perf_counter()
            [hit.docid for hit in self.searcher.search(query, k=top_k)]
            latencies.append(time.perf_counter() - began)

        with ThreadPoolExecutor(clients) as pool:
            began = time.perf_counter()
            list(pool.map(timed, self.queries))
            return time.perf_counter() - began, latencies


def main():
    """Answer until there are no more requests."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Importing this module downloads lists of indexes that others built, of which none is used.
    sys.modules["pyserini.prebuilt_index_info"] = NoLists("pyserini.prebuilt_index_info")
    worker = Worker()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"answer": getattr(worker, asked.pop("do"))(**asked)}
        except BaseException as error:  # Java's are no Exception of Python's in all releases
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
