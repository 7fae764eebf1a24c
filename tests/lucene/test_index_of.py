"""Indexes for the tests of users: ``arag_search.testing``."""

import subprocess
import sys
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import SourceError
from arag_search.testing import index_of


def test_texts_mappings_and_documents_are_searched_by_the_types_of_their_values() -> None:
    poem = {"id": "b", "text": "A poem.", "year": 1847, "tags": ["verse"], "draft": False}
    with index_of(["Vivaldi.", poem, Document("c", "Corelli", "Born in Fusignano.")]) as index:
        for query, ids in {
            "vivaldi": ["1.1"],
            "year:>=1800 AND draft:false AND tags:verse": ["b.1"],
            "title:corelli": ["c.1"],
        }.items():
            assert [hit.id for hit in index.logical_search(query).hits] == ids


@pytest.mark.server
def test_indexes_are_apart_and_gone_with_the_process() -> None:
    code = (
        "from arag_search.testing import index_of\n"
        "one, other = index_of(['Vivaldi.']), index_of(['Corelli.'])\n"
        "assert one.logical_search('corelli').total == 0\n"
        "print(one.location, other.location)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [Path(place).exists() for place in dict.fromkeys(done.stdout.split())] == [False, False]


def test_a_document_without_a_text_is_refused_as_in_a_build() -> None:
    with pytest.raises(SourceError, match="text"):
        index_of([{"id": "a"}])
