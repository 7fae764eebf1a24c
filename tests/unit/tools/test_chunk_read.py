"""Reading chunks in full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import MAX_ID_BYTES, Chunk
from arag_search.errors import AragError
from arag_search.plan.clauses import ResolvedPlan
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.passages.read import ChunkRead
from arag_search.tools.preset import plain_preset
from arag_search.tools.tool import ReadSet
from tests.support.examples import examples
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import VIVALDI, chunk, index_of, random_chunks


def test_python_code_gets_result_objects_and_exceptions_instead_of_texts(index: Index) -> None:
    reads = index.chunk_read(["vivaldi.2", "page.1"])
    assert [(read.chunk.id, read.previous_id, read.next_id) for read in reads] == [
        ("vivaldi.2", "vivaldi.1", None),
        ("page.1", None, None),
    ]
    for call, message in (
        (lambda: index.chunk_read("page.1"), "ids is 'page.1'.\nWhere: Index.chunk_read\n"
         "Allowed: a list of strings\nDo: Write ['page.1']."),
        (lambda: index.chunk_read(["page"]), 'No passage has the id "page".\nWhere: memory\n'
         "Allowed: ids as searches show them in brackets\nDo: Search first, and copy the id."),
    ):  # fmt: skip
        with pytest.raises(AragError) as caught:
            call()
        assert str(caught.value) == message


def test_chunks_are_read_with_their_place_neighbours_and_metadata(read: ChunkRead) -> None:
    result = read.run({"chunk_ids": ["vivaldi.1", "page.1", "vivaldi.1"]})
    assert result.text == (
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2 (whole part)\n"
        "(next: vivaldi.2; year: 1678; lang: en, it)\n"
        "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. Each "
        "libretto was new.\n"
        "[page.1] (whole document)\n"
        "A page without a title."
    )
    assert (result.status, result.ids, result.total) == ("ok", ("vivaldi.1", "page.1"), None)
    assert result.retrieved_tokens == sum(
        map(count_tokens, ("Antonio Vivaldi", VIVALDI[0].content, "A page without a title."))
    )


def test_unknown_ids_are_named_and_are_an_error_only_if_all_ids_are_unknown(
    read: ChunkRead,
) -> None:
    result = read.run({"chunk_ids": ["page", "[page.1]"]})
    assert result.text == (
        "[page.1] (whole document)\nA page without a title.\n"
        'Unknown: "page". Ids stand in brackets in search replies.'
    )
    assert result.status == "ok"
    result = read.run({"chunk_ids": ["page", "page"]})
    assert result.text == 'No passage has the id "page". Ids stand in brackets in search replies.'
    assert result.status == "error"
    result = read.run({"chunk_ids": ["page", "z" * 100_000]})
    assert result.text.startswith('No passages have the ids "page", "zzzz')
    assert result.text.endswith('z ...". Ids stand in brackets in search replies.')
    assert result.tokens < 100


def test_ids_are_looked_up_in_nfc() -> None:
    index = index_of(chunk(0, "caf\u00e9", "", "Coffee."))
    assert (
        ChunkRead(index).run({"chunk_ids": ["cafe\u0301.1"]}).text
        == "[caf\u00e9.1] (whole document)\nCoffee."
    )


@pytest.mark.parametrize("unit", ["z", "\u0301\u0316", "["])
def test_an_id_that_is_too_long_is_cut_before_it_is_looked_up(
    unit: str, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read = MemoryEngine.read

    def noted(
        engine: MemoryEngine, ids: Sequence[str], scope: ResolvedPlan | None
    ) -> list[Chunk | None]:
        asked.extend(ids)
        return read(engine, ids, scope)

    monkeypatch.setattr(MemoryEngine, "read", noted)
    id = unit * (480_000 // len(unit))
    assert ChunkRead(index).run({"chunk_ids": [id]}).status == "error"
    assert index.read([id]) == [None]
    assert index.document_lines([id]) == [None]
    for call in (
        lambda: index.chunk_read([id]),
        lambda: index.document_read(id),
        lambda: index.logical_search("violin", show="titles", after=id),
    ):
        with pytest.raises(AragError) as caught:
            call()
        assert len(str(caught.value)) < 3_000
    assert asked
    assert max(map(len, asked)) <= 2 * MAX_ID_BYTES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"chunk_ids": ["griselda.1"], "from_sentence": 4},
         'Tool not run: there is no sentence 4 in passage "griselda.1", which has 3. '
         "Allowed: 1 to 3."),
        ({"chunk_ids": ["griselda.1", "page.1"], "from_sentence": 2},
         "Tool not run: from_sentence with 2 ids. It takes one; read the others in "
         "another call."),
    ],
)  # fmt: skip
def test_an_impossible_read_is_an_error(
    read: ChunkRead, arguments: dict[str, object], message: str
) -> None:
    result = read.run(arguments)
    assert (result.text, result.status) == (message, "error")


def test_reading_from_the_middle_does_not_mark_the_beginning_as_read(read: ChunkRead) -> None:
    read_set = ReadSet()
    result = read.run({"chunk_ids": ["griselda.1"], "from_sentence": 3}, read_set)
    assert result.text == (
        "[griselda.1] Griselda (Vivaldi)\n(year: 1735)\n"
        "(2 left out) Its libretto was revised by the young Carlo Goldoni."
    )
    assert "Griselda is an opera" in read.run({"chunk_ids": ["griselda.1"]}, read_set).text


def test_a_chunk_without_text_is_its_header() -> None:
    tool = ChunkRead(index_of(chunk(0, "d", "Only a title")))
    assert tool.run({"chunk_ids": ["d.1"]}).text == "[d.1] Only a title (no text)"


def test_a_scope_hides_chunks_from_reads_and_from_neighbours() -> None:
    index = index_of(*VIVALDI, scope="NOT doc_id:page AND year:[1678 TO 1721]")
    tool = ChunkRead(index)
    assert tool.run({"chunk_ids": ["griselda.1"]}).status == "error"
    assert tool.run({"chunk_ids": ["page.1"]}).status == "error"
    assert tool.run({"chunk_ids": ["scarlatti.1"]}).status == "ok"
    assert LogicalSearch(index).run({"query": "title:griselda"}).ids == ("scarlatti.1",)
    assert KeywordSearch(index).run({"keywords": ["griselda", "page"]}).ids == ("scarlatti.1",)


def test_a_long_chunk_is_read_in_several_calls_and_then_marked() -> None:
    sentences = [f"Sentence {number} is about an opera by {'la ' * 9}. " for number in range(40)]
    tool = ChunkRead(
        index_of(chunk(0, "d", "Long", *sentences)), plain_preset(max_result_tokens=200)
    )
    read_set = ReadSet()
    text, first, steps = "", 1, 0
    while True:
        result = tool.run({"chunk_ids": ["d.1"], "near": f"sentence {first}"}, read_set)
        steps += 1
        assert result.tokens <= 200
        body = result.text.splitlines()[1]
        text += re.sub(r"\(\d+ (left out|shown before)\)", "", body).strip() + " "
        assert result.retrieved_tokens == count_tokens("Long") + count_tokens(body)
        if not result.text.splitlines()[-1].startswith("Shown up to"):
            break
        continuation = re.fullmatch(
            r'Shown up to sentence (\d+) of 40\. Go on: chunk_ids \["d\.1"\], '
            r'near "sentence (\d+)"\.',
            result.text.splitlines()[-1],
        )
        assert continuation
        assert int(continuation[1]) == int(continuation[2]) - 1
        first = int(continuation[2])
    assert steps > 3
    assert text == "".join(sentences)
    repeated = tool.run({"chunk_ids": ["d.1"]}, read_set)
    assert repeated.text == "[d.1] Long (shown before)"
    assert (repeated.status, repeated.ids) == ("ok", ("d.1",))
    assert repeated.retrieved_tokens == count_tokens("Long")


def test_chunks_that_do_not_fit_are_named_and_shorter_ones_after_them_are_shown() -> None:
    chunks = [chunk(n, f"d{n}", "", "la " * length) for n, length in enumerate((90, 90, 9, 200))]
    tool = ChunkRead(index_of(*chunks), plain_preset(max_result_tokens=200))
    read_set = ReadSet()
    result = tool.run({"chunk_ids": [passage.id for passage in chunks] + ["nope"]}, read_set)
    assert result.text == (
        f"[d0.1] (whole document)\n{('la ' * 90).strip()}\n"
        f"[d2.1] (whole document)\n{('la ' * 9).strip()}\n"
        'Not shown for want of room: chunk_ids ["d1.1", "d3.1"].\n'
        'Unknown: "nope". Ids stand in brackets in search replies.'
    )
    assert result.ids == ("d0.1", "d2.1")
    result = tool.run({"chunk_ids": ["d0.1", "d3.1"]}, read_set)  # the first passage needs no room
    assert result.ids == ("d0.1", "d3.1")
    assert result.text.startswith("[d0.1] (shown before)\n[d3.1]\nla la")


@given(st.integers(0, 1_000_000).map(Random), st.sampled_from((200, 400)))
@settings(max_examples=examples(10), deadline=None)
def test_every_read_keeps_the_bound_and_reads_to_the_end(random: Random, bound: int) -> None:
    chunks = random_chunks(random)
    tool = ChunkRead(index_of(*chunks), plain_preset(max_result_tokens=bound))
    ids = random.sample([passage.id for passage in chunks], k=min(len(chunks), 12))
    result = tool.run({"chunk_ids": [*ids, "nope"]})
    assert count_tokens(result.text) == result.tokens <= bound
    assert result.retrieved_tokens < result.tokens
    for chunk_id in ids[:3]:
        read_set, first = ReadSet(), 1
        while first:
            near = f"sentence {first}"
            result = tool.run({"chunk_ids": [chunk_id], "near": near}, read_set)
            assert result.tokens <= bound
            assert result.ids == (chunk_id,)
            continuation = re.search(r'near "sentence (\d+)"\.$', result.text)
            assert continuation is None or int(continuation[1]) > first
            first = 0 if continuation is None else int(continuation[1])
