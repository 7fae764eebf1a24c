"""The documents of an index: listed, and read whole."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from arag_search.errors import IndexDamagedError, UnknownDocumentError
from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from tests.support.passages import VIVALDI, chunk, index_of


def test_documents_stream_in_corpus_order_with_all_their_passages(index: Index) -> None:
    documents = list(index.documents())
    assert [part for document in documents for part in document.chunks] == list(VIVALDI)
    first = documents[0]
    assert first.text == VIVALDI[0].content + VIVALDI[1].content
    assert (first.characters, first.sentence_ends[-1]) == (len(first.text), len(first.text))
    starts = (0, *first.sentence_ends)
    sentences = [first.text[start:end] for start, end in pairwise(starts)]
    assert sentences == VIVALDI[0].sentences() + VIVALDI[1].sentences()


def test_documents_obey_the_scope_and_the_filter() -> None:
    index = index_of(*VIVALDI, scope="year:>1600")
    assert [document.id for document in index.documents(filter="year:<1730")] == [
        "vivaldi",
        "scarlatti",
    ]
    assert list(index.documents(filter="year:<1600")) == []
    with pytest.raises(QueryError, match="the filter"):
        index.documents(filter="nothing:1")


def test_a_whole_document_has_the_offsets_of_its_passages(index: Index) -> None:
    values = index.document_read("vivaldi").to_dict()
    assert json.loads(json.dumps(values)) == values
    assert [values["text"][part["start"] : part["end"]] for part in values["chunks"]] == [
        VIVALDI[0].content,
        VIVALDI[1].content,
    ]
    assert [part["id"] for part in values["chunks"]] == ["vivaldi.1", "vivaldi.2"]


@pytest.mark.parametrize(
    ("doc_id", "suggestion"),
    [
        ("vivaldi.2", 'Did you mean "vivaldi"? '),
        ("VIVAL", 'Did you mean "vivaldi"? '),
        ("grizelda", 'Did you mean "griselda"? '),
        ("", ""),
        ("\ud800", ""),
        ("xyz", ""),
    ],
)
def test_an_unknown_document_suggests_ids_and_says_how_to_list_them(
    index: Index, doc_id: str, suggestion: str
) -> None:
    with pytest.raises(UnknownDocumentError) as caught:
        index.document_read(doc_id)
    error = caught.value
    assert (error.what, error.where) == (f'No document has the id "{doc_id}".', "memory")
    assert error.allowed == "ids as the field doc_id has them"
    assert error.do == (
        f"{suggestion}arag-search read INDEX --all lists all ids, Index.documents in Python."
    )


def test_a_document_out_of_scope_is_unknown_and_never_suggested() -> None:
    index = index_of(*VIVALDI, scope="year:>1600")
    for doc_id in ("vivaldi", "vivaldi.1"):
        with pytest.raises(UnknownDocumentError) as caught:
            index.document_read(doc_id, filter="year:>1700")
        assert "Did you mean" not in str(caught.value)


def test_a_document_that_loses_passages_while_it_is_read_is_an_error() -> None:
    torn = index_of(*VIVALDI[1:], chunk(9, "more", "", "More. ", parts=2))
    for call in (lambda: list(torn.documents()), lambda: torn.document_read("more")):
        with pytest.raises(IndexDamagedError, match='Passages of the document "'):
            call()
