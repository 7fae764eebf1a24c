# /// script
# requires-python = ">=3.11"
# dependencies = ["tantivy==0.27.0"]
# ///
"""tantivy with English stems: a reply has the best three passages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import tantivy
from common import SHOWN, main, passages


def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
    return builder.build()


def build(folder: str, work: Path) -> None:
    writer = tantivy.Index(schema(), path=str(work)).writer(num_threads=1)
    for passage in passages(folder):
        writer.add_document(tantivy.Document(text=passage))
    writer.commit()
    writer.wait_merging_threads()


def searcher(work: Path) -> Callable[[str], list[str]]:
    index = tantivy.Index(schema(), path=str(work))
    index.reload()
    opened = index.searcher()

    def search(query: str) -> list[str]:
        words = " ".join(re.findall(r"\w+", query))
        hits = opened.search(index.parse_query(words, ["text"]), SHOWN).hits
        return [opened.doc(place)["text"][0] for _, place in hits]

    return search


main(build, searcher)
