"""The shared parts of the scripts of peers: pages and code as text, passages of 200 words, one
protocol.

SCRIPT first FOLDER WORK QUERY   index the pages of a folder, and print one reply
SCRIPT again WORK QUERY          open the index, and print one reply
SCRIPT all WORK QUERIES.json     print the replies to a list of queries, as JSON
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

SUFFIXES = (".html", ".md", ".py", ".js", ".mjs", ".ts", ".tsx")
WORDS = 200
SHOWN = 3
_UNSEEN = re.compile(r"<(script|style|head)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
_BREAK = re.compile(r"</?(?:p|div|li|tr|dt|dd|h\d|pre|br|table)\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")


def passages(folder: str) -> list[str]:
    """Return the passages of all pages, each below the name of its file."""
    made: list[str] = []
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            text = path.read_text("utf-8", "replace")
            if path.suffix == ".html":
                text = html.unescape(_TAG.sub("", _BREAK.sub("\n", _UNSEEN.sub("", text))))
            words = text.split()
            for at in range(0, len(words), WORDS):
                name = path.relative_to(folder)
                made.append(f"[{name}]\n{' '.join(words[at : at + WORDS])}")
    return made


def main(
    build: Callable[[str, Path], None], searcher: Callable[[Path], Callable[[str], list[str]]]
) -> None:
    """Run a script. ``build`` writes the index of a folder into another folder. ``searcher`` opens
    this index and returns a function from a query to the passages of a reply."""
    match sys.argv[1:]:
        case ["first", folder, work, query]:
            Path(work).mkdir(parents=True, exist_ok=True)
            build(folder, Path(work))
            print("\n\n".join(searcher(Path(work))(query)))
        case ["again", work, query]:
            print("\n\n".join(searcher(Path(work))(query)))
        case ["all", work, queries]:
            search = searcher(Path(work))
            asked = json.loads(Path(queries).read_text())
            print(json.dumps(["\n\n".join(search(query)) for query in asked]))
        case _:
            sys.exit(__doc__)
