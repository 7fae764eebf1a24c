"""Chunks: no text is lost, and no chunk is too long."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arag_search.corpus import MAX_SENTENCES, Document, chunk_ordinal, nfc, ordinal_of
from arag_search.errors import BuildError
from arag_search.tokens import count_tokens
from index_jobs.cutting.chunking import cut

PIECES = st.sampled_from(
    [
        *("Vivaldi", "Dr. ", "A. ", "e.g. ", ". ", "! ", "?", '"', "(", ")", " ", "1.5 ", "\n\n"),
        *("é", "e\u0301", "日本。", "\u2028", "\u00a0", "“", "’s ", "🎉", "\n", "\t", "\r\n"),
        *("word " * 40, "x" * 90),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join))


@given(TEXTS, st.integers(16, 60), st.booleans())
@example("(" + "Open. " * 1500, 40, False)
def test_the_chunks_of_a_text_join_to_the_normalised_text(
    text: str, chunk_tokens: int, whole: bool
) -> None:
    document = Document("d", "Title", text, whole=whole)
    chunks, tokens = cut(document, shard=2, number=7, chunk_tokens=chunk_tokens)
    assert "".join(chunk.content for chunk in chunks) == nfc(text)
    assert tokens == sum(count_tokens(chunk.content) for chunk in chunks)
    for place, chunk in enumerate(chunks):
        assert "".join(chunk.sentences()) == chunk.content
        assert (chunk.part, chunk.parts) == (place + 1, len(chunks))
        assert chunk.ordinal == ordinal_of(2, 7, place) == chunk_ordinal(chunk.ordinal)
        assert chunk.id == ("d" if whole else f"d.{place + 1}")
        assert whole or count_tokens(chunk.content) <= chunk_tokens
        assert nfc(chunk.content) == chunk.content


def test_chunks_are_filled_with_whole_sentences() -> None:
    text = "One two three four five six seven eight nine. " * 60
    chunks, tokens = cut(Document("d", "", text), shard=0, number=0, chunk_tokens=100)
    assert [chunk.content.count("nine. ") for chunk in chunks] == [9, 9, 9, 9, 9, 9, 6]
    assert all(chunk.content.startswith("One") for chunk in chunks)
    assert tokens == sum(count_tokens(chunk.content) for chunk in chunks)


def test_a_long_sentence_is_cut_at_a_blank_and_a_word_without_blanks_at_the_limit() -> None:
    words = "wordless " * 100
    chunks, _ = cut(
        Document("d", "", words, sentence_ends=(900,)), shard=0, number=0, chunk_tokens=16
    )
    assert len(chunks) > 5
    assert all(chunk.content.endswith("wordless ") for chunk in chunks)
    chunks, _ = cut(Document("d", "", "ab-" * 100), shard=0, number=0, chunk_tokens=16)
    assert [count_tokens(chunk.content) <= 16 for chunk in chunks] == [True] * len(chunks)
    assert len(chunks) > 5


def test_a_chunk_has_no_more_sentences_than_their_ordinals_can_number() -> None:
    text = "No. " * (MAX_SENTENCES + 1)
    document = Document("d", "", text, sentence_ends=tuple(range(4, len(text) + 1, 4)))
    chunks, _ = cut(document, shard=0, number=0, chunk_tokens=len(text))
    assert [len(chunk.sentence_ends) for chunk in chunks] == [MAX_SENTENCES, 1]


def test_sentences_of_the_source_are_preserved() -> None:
    document = Document("d", "", "One. Two. Three.", sentence_ends=(10, 16))
    chunks, _ = cut(document, shard=0, number=0, chunk_tokens=100)
    assert [chunk.sentences() for chunk in chunks] == [["One. Two. ", "Three."]]


def test_a_pre_chunked_passage_keeps_its_id_and_merges_surplus_sentences_into_its_last() -> None:
    text = "No. " * (MAX_SENTENCES + 10)
    ends = tuple(range(4, len(text) + 1, 4))
    chunks, _ = cut(
        Document("7", "", text, sentence_ends=ends, whole=True), shard=0, number=0, chunk_tokens=16
    )
    assert [chunk.id for chunk in chunks] == ["7"]
    assert len(chunks[0].sentence_ends) == MAX_SENTENCES
    assert chunks[0].sentences()[-1] == "No. " * 11


def test_a_document_of_only_a_title_is_one_empty_chunk() -> None:
    chunks, tokens = cut(Document("d", "Title", ""), shard=0, number=0, chunk_tokens=16)
    assert [(chunk.content, chunk.sentence_ends, chunk.parts) for chunk in chunks] == [("", (), 1)]
    assert tokens == 0


def test_more_chunks_than_an_ordinal_can_number_are_rejected() -> None:
    with pytest.raises(BuildError) as caught:
        ordinal_of(0, 0, 1 << 15)
    assert "32,768" in caught.value.what
