# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""SQLite's FTS5 with Porter's stems: a reply has the best three passages."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

from common import SHOWN, main, passages

SELECT = "SELECT text FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?"


def build(folder: str, work: Path) -> None:
    with sqlite3.connect(work / "index.db") as database:
        database.execute("CREATE VIRTUAL TABLE passage USING fts5(text, tokenize = 'porter')")
        rows = ((passage,) for passage in passages(folder))
        database.executemany("INSERT INTO passage VALUES (?)", rows)


def searcher(work: Path) -> Callable[[str], list[str]]:
    database = sqlite3.connect(work / "index.db")

    def search(query: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        return [text for (text,) in database.execute(SELECT, (words, SHOWN))]

    return search


main(build, searcher)
