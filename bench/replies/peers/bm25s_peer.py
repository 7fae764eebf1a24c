# /// script
# requires-python = ">=3.11"
# dependencies = ["bm25s==0.3.16", "PyStemmer==3.1.0"]
# ///
"""bm25s with the stems and stop words of English: a reply has the best three passages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import bm25s
import Stemmer
from common import SHOWN, main, passages

STEMMER = Stemmer.Stemmer("english")


def tokens(texts: list[str]) -> object:
    return bm25s.tokenize(texts, stopwords="en", stemmer=STEMMER, show_progress=False)


def build(folder: str, work: Path) -> None:
    made = passages(folder)
    index = bm25s.BM25()
    index.index(tokens(made), show_progress=False)
    index.save(str(work / "index"))
    (work / "passages.json").write_text(json.dumps(made))


def searcher(work: Path) -> Callable[[str], list[str]]:
    index = bm25s.BM25.load(str(work / "index"), mmap=True)
    made = json.loads((work / "passages.json").read_text())

    def search(query: str) -> list[str]:
        numbers, _ = index.retrieve(tokens([query]), k=SHOWN, show_progress=False)
        return [made[number] for number in numbers[0]]

    return search


main(build, searcher)
