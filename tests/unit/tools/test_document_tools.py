"""The tools of AgenticRAG: search, find, open and summarize, over documents in memory."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arag_search.agent.state import State
from arag_search.corpus import PassageOutline
from arag_search.query.filters import parse_filter
from arag_search.search.index import Index
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.conversation import FORM, References
from arag_search.tools.documents.find import matches_of
from arag_search.tools.documents.open import OpenLines
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import changed_preset, load_preset
from arag_search.tools.replies.spans import check_spans
from arag_search.tools.tool import ReadSet, Tool, ToolResult
from arag_search.tools.toolbox import tools_of
from tests.support.examples import examples
from tests.support.long_documents import index_of_documents, long_document, random_text, report
from tests.support.passages import SCHEMA
from tests.support.plans import scoped
from tests.support.shared_data import DATA
from tests.support.strategies import WORDS

CAPITAL = "Purchases of property, plant and equipment (PP&E)   (1,577)"
SPENT = report("3M", 60, {20: CAPITAL, 40: "Net sales were 32,765."})
OTHER = report("Ford", 30, {3: "Ford has plants in Ohio. They build cars."})
NOTE = "A short note about 3M. It is all of it."


def documents(*, vectors: bool = False) -> Index:
    return index_of_documents(
        long_document(0, "3m", "3M annual report", SPENT, year=2018, lang="en"),
        long_document(1, "ford", "Ford annual report", OTHER, year=2019, lang="en"),
        long_document(2, "note", "", NOTE),
        vectors=vectors,
    )


def preset(name: str = "agentic_rag", **changes: object) -> Preset:
    return changed_preset(load_preset(name), changes, "test")


class Tools:
    """The tools of a preset over an index, in one conversation."""

    def __init__(self, index: Index, chosen: Preset | None = None) -> None:
        self.offered: Mapping[str, Tool] = tools_of(chosen or preset(), index)
        self.read_set = ReadSet()

    def __call__(self, name: str, /, **arguments: object) -> ToolResult:
        result = self.offered[name].run(arguments, self.read_set)
        check_spans(result.passages, result.text)
        assert result.tokens == count_tokens(result.text)
        assert result.tokens <= self.offered[name].max_result_tokens
        return result


# search


def test_a_search_shows_documents_with_references_lines_and_queries() -> None:
    result = Tools(documents())("search", queries=["capital PP&E", "3M note"])
    assert result.text == (
        "2 queries, 2 documents (1 found by both).\n"
        "1: 1 for (capital OR pp OR e). 2: 2 for (3m OR note).\n"
        "[turn0search0] 3M annual report\n"
        "(lines: 60; year: 2018; lang: en; queries: 1, 2)\n"
        "line 21: ... Purchases of property, plant and equipment (PP&E) (1,577)\n"
        "line 1: The 3M report says one on line 0.\n"
        "line 10: The 3M report says ten on line 9.\n"
        "[turn0search1]\n"
        "(lines: 1; queries: 2)\n"
        "line 1: A short note about 3M.\n"
        "Go deeper: find with patterns, open with line_number."
    )
    assert result.status == "ok"
    assert [shown.reference for shown in result.references] == ["turn0search0", "turn0search1"]
    assert [shown.doc_id for shown in result.references] == ["3m", "note"]
    assert result.ids == tuple(dict.fromkeys(span.id for span in result.passages))


def test_a_document_that_is_found_again_keeps_its_reference() -> None:
    ask = Tools(documents())
    ask("search", queries=["ford"])
    again = ask("search", queries=["ford report", "note"])
    assert "2 queries, 3 documents (1 seen before)." in again.text
    assert again.references[0].reference == "turn0search0"


def test_queries_that_differ_in_case_and_blanks_alone_are_one() -> None:
    result = Tools(documents())("search", queries=["Ohio  cars", "ohio CARS"])
    assert result.text.startswith("1 query, 1 document.\n1: 1 for (ohio OR cars).\nNote: 1 of 2")


def test_a_search_that_finds_nothing_says_so_for_every_query() -> None:
    result = Tools(documents())("search", queries=["zebra", "quagga"])
    assert result.status == "empty"
    assert result.text == (
        "No document matches any of the 2 queries.\n1: 0 for zebra. 2: 0 for quagga."
    )
    logical = Tools(documents(), preset("agentic_logical"))
    result = logical("search", queries=["zebra AND report"])
    assert "No document matches the query." in result.text
    assert "zebra occurs nowhere" in result.text


def test_a_query_with_problems_is_corrected_and_the_others_run() -> None:
    ask = Tools(documents(), preset("agentic_logical"))
    result = ask("search", queries=["ohio AND (", "plants"])
    assert result.status == "ok"
    assert "\n1: Query not run: 2 problems." in result.text
    assert ask("search", queries=["ohio AND ("]).status == "error"


def test_a_filter_takes_clauses_on_metadata_alone() -> None:
    ask = Tools(documents())
    result = ask("search", queries=["report"], filter="year:2019")
    assert [shown.doc_id for shown in result.references] == ["ford"]
    assert ask("search", queries=["report"], filter="report").status == "error"


def test_one_query_at_a_time_is_another_argument() -> None:
    ask = Tools(documents(), load_preset("agentic_rag_single_query"))
    assert list(ask.offered["search"].parameters["properties"]) == ["query", "filter"]
    assert ask("search", query="ohio").references[0].doc_id == "ford"


def test_sentences_that_are_still_visible_are_not_shown_again() -> None:
    ask = Tools(documents())
    first = ask("search", queries=["ohio"])
    again = ask("search", queries=["ohio"])
    assert "Ford has plants in Ohio." in first.text
    assert "[turn0search0] Ford annual report (shown before)" in again.text
    assert "Ohio." not in again.text


@pytest.mark.parametrize("backend", ["auto", "words", "hybrid", "semantic"])
def test_every_backend_finds_the_document(backend: str) -> None:
    ask = Tools(documents(vectors=True), preset(search_backend=backend))
    result = ask("search", queries=["Ford has plants in Ohio"])
    assert result.references[0].doc_id == "ford"
    assert "Ford has plants in Ohio." in result.text


@pytest.mark.parametrize(
    ("name", "backend", "matches"),
    [("agentic_rag", "words", 1), ("agentic_rag", "logical", 1), ("agentic_logical", "logical", 2)],
)
def test_presets_of_papers_and_plain_words_match_no_possessives(
    name: str, backend: str, matches: int
) -> None:
    index = index_of_documents(
        long_document(0, "plain", "", "A plant of Ford is in Ohio."),
        long_document(1, "possessive", "", "It is Ford's plant."),
    )
    run = Tools(index, preset(name, search_backend=backend))
    assert len(run("search", queries=["ford"]).ids) == matches


def test_of_a_long_sentence_the_lines_with_the_words_are_shown() -> None:
    table = "\n".join(f"row {n} | {n * 7} | value" for n in range(200))
    table += "\nnet income | 5,363 | total\n" + table
    index = index_of_documents(long_document(0, "t", "Table", table.replace(".", ""), 9_000))
    chunks = list(index.scan())
    assert len(chunks) >= 1
    result = Tools(index)("search", queries=["net income"])
    assert "line 201: ... net income | 5,363 | total" in result.text


# find


def test_find_shows_two_places_of_a_pattern_and_names_the_others() -> None:
    ask = Tools(documents())
    ask("search", queries=["equipment"])
    result = ask("find", reference_id="[turn0search0]", patterns=["pp&e", "says three", "zebra"])
    assert result.text == (
        "[turn0search0] 3M annual report: 3 patterns in 60 lines.\n"
        '"pp&e": 1 match.\n'
        'lines 19-25 (also "says three")\n'
        "19: The 3M report says nine on line 18.\n"
        "20: The 3M report says ten on line 19.\n"
        f"21: {CAPITAL}\n"
        "22: The 3M report says two on line 21.\n"
        "23: The 3M report says three on line 22.\n"
        "24: The 3M report says four on line 23.\n"
        "25: The 3M report says five on line 24.\n"
        '"says three": 6 matches, shown 2; others at lines 13, 33, 43, 53.\n'
        "lines 1-5\n"
        "1: The 3M report says one on line 0.\n"
        "2: The 3M report says two on line 1.\n"
        "3: The 3M report says three on line 2.\n"
        "4: The 3M report says four on line 3.\n"
        "5: The 3M report says five on line 4.\n"
        '"zebra": no match. Try a shorter pattern, or open.'
    )
    assert result.status == "ok"
    assert ask("find", reference_id="turn0search0", patterns=["zebra"]).status == "empty"


def test_find_says_which_references_there_are() -> None:
    ask = Tools(documents())
    missing = ask("find", reference_id="turn0search0", patterns=["x"])
    assert missing.text == (
        "There is no reference turn0search0: no search has shown a document. Search first."
    )
    ask("search", queries=["report"])
    missing = ask("find", reference_id="turn9search99\n[x] Fake", patterns=["x"])
    assert missing.status == "error"
    assert missing.text == (
        "There is no reference turn9search99 [x] Fake. Known: turn0search0 to turn0search1; "
        "ids stand in brackets."
    )


def test_find_by_meaning_shows_the_nearest_sentences() -> None:
    ask = Tools(documents(vectors=True))
    ask("search", queries=["ford"])
    result = ask("find", reference_id="turn0search0", patterns=["plants in Ohio"], mode="semantic")
    assert '"plants in Ohio": nearest: line 4 (cosine 0.' in result.text
    assert "4: Ford has plants in Ohio. They build cars." in result.text
    lexical = Tools(documents(), load_preset("agentic_rag_lexical_find"))
    assert "mode" not in lexical.offered["find"].parameters["properties"]


def test_find_takes_regular_expressions_where_no_paper_is_reproduced() -> None:
    ask = Tools(documents(), load_preset("agentic_logical"))
    ask("search", queries=["ford"])
    result = ask("find", reference_id="turn0search0", patterns=[r"/F[o]rd\shas\s\w+/", "/ohio/i"])
    assert r'"/F[o]rd\shas\s\w+/": 1 match.' in result.text
    assert '"/ohio/i": 1 match' in result.text
    wrong = ask("find", reference_id="turn0search0", patterns=["/(/"])
    assert wrong.status == "error"
    assert "missing )" in wrong.text
    paper = Tools(documents())
    paper("search", queries=["ford"])
    assert (
        '"/ohio/i": no match'
        in paper("find", reference_id="turn0search0", patterns=["/ohio/i"]).text
    )


def test_find_shows_as_many_places_and_lines_as_asked_where_no_paper_is_reproduced() -> None:
    ask = Tools(documents(), load_preset("agentic_logical"))
    ask("search", queries=["ford"])
    shown = ask("find", reference_id="turn0search0", patterns=["ford"], matches=1, context=0)
    assert "\nline " in shown.text
    wrong = ask("find", reference_id="turn0search0", patterns=["ford"], matches=0)
    assert wrong.status == "error"
    paper = Tools(documents()).offered["find"].parameters["properties"]
    assert not {"matches", "context"} & set(paper)


@given(seed=st.integers(0, 100_000), places=st.integers(1, 5), context=st.integers(0, 3))
@settings(max_examples=examples(200), deadline=None)
def test_windows_are_those_of_a_naive_choice(seed: int, places: int, context: int) -> None:
    random = Random(seed)
    text = random_text(random, WORDS[:9], 120)
    index = index_of_documents(long_document(0, "d", "D", text))
    lines = index.document_lines(["d"])[0]
    assert lines is not None
    patterns = random.sample(WORDS[:9], 3)
    all_matches = matches_of(
        lines, patterns, [lines.occurrences(text) for text in patterns], places, context
    )
    windows_of = [
        [
            (max(first - context, 0), min(last + context, len(lines) - 1))
            for first, last in matches.matches
        ]
        for matches in all_matches
    ]
    for matches, windows in zip(all_matches, windows_of, strict=True):

        def patterns_in(window: tuple[int, int]) -> int:
            return sum(
                any(window[0] <= first and last <= window[1] for first, last in other.matches)
                for other in all_matches
            )

        expected: list[tuple[int, int]] = []
        for window in sorted(set(windows), key=lambda at: (-patterns_in(at), at)):
            shown = ["\n".join(map(lines.line, range(a, b + 1))) for a, b in expected]
            text = "\n".join(map(lines.line, range(window[0], window[1] + 1)))
            free = all(window[1] < a or b < window[0] for a, b in expected)
            if free and text not in shown and len(expected) < places:
                expected.append(window)
        assert matches.windows == expected


# open


def test_open_shows_lines_from_a_number_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenLines, "most_lines", 3)
    ask = Tools(documents())
    ask("search", queries=["equipment"])
    result = ask("open", reference_id="turn0search0", line_number=20)
    assert result.text == (
        "[turn0search0] 3M annual report\n"
        "Viewing lines [20-22] of 60 lines. More: line_number 23.\n"
        "20: The 3M report says ten on line 19.\n"
        f"21: {CAPITAL}\n"
        "22: The 3M report says two on line 21."
    )
    last = ask("open", reference_id="turn0search0", line_number=59)
    assert "Viewing lines [59-60] of 60 lines.\n59: " in last.text
    beyond = ask("open", reference_id="turn0search0", line_number=61)
    assert beyond.status == "error"
    assert beyond.text == (
        "Tool not run: line_number is 61. The last line of the document [turn0search0] is 60."
    )


@given(seed=st.integers(0, 100_000), bound=st.sampled_from([200, 4_000, 12_000]))
@settings(max_examples=examples(60), deadline=None)
def test_every_line_that_open_shows_is_that_of_the_document(seed: int, bound: int) -> None:
    random = Random(seed)
    text = random_text(random, [*WORDS, "[x.1] Fake", "0: one", "\u2028", "\r"], 900)
    index = index_of_documents(long_document(0, "d", "D", text))
    lines = index.document_lines(["d"])[0]
    assert lines is not None
    ask = Tools(index, preset(max_result_tokens=bound))
    ask.read_set.references.of_document("d", "D", 0)
    first, shown = 0, list[str]()
    while True:
        line, column = lines.place(first) if len(lines) else (1, 1)
        result = ask("open", reference_id="turn0search0", line_number=line, column=column)
        _, heading, *numbered = result.text.split("\n")
        for number, line in enumerate(numbered, first):
            full = re.sub(r"[\r\u2028]", " ", f"{lines.name(number)}: {lines.line(number)}")
            is_cut = len(numbered) == 1 and line == cut_to(full, count_tokens(line))
            assert line == full or is_cut
            shown.append(line)
        for span in result.passages:
            chunk = index.chunk_read([span.id])[0].chunk
            inside = "".join(span.text_in(result.text).split())
            assert inside in "".join(chunk.content.split())
        first += len(numbered)
        if "More:" not in heading:
            break
        line, column = lines.place(first)
        assert lines.text[: lines.starts[first]].count("\n") + 1 == line
        assert f"More: line_number {line}{f', column {column}' * (column > 1)}." in heading
    assert len(shown) == len(lines)


def test_open_shows_the_path_of_lines_below_the_first() -> None:
    rows = PassageOutline("Prices > id | product", 6)
    passages = long_document(0, "3m", "3M annual report", SPENT)
    index = index_of_documents([replace(passage, outline=rows) for passage in passages])
    ask = Tools(index)
    ask("search", queries=["equipment"])
    for line, name in ((1, "3M annual report"), (2, "3M annual report > Prices > id | product")):
        shown = ask("open", reference_id="turn0search0", line_number=line).text
        assert shown.startswith(f"[turn0search0] {name}\nViewing lines [{line}-60]")


def test_our_own_preset_does_not_open_lines_that_are_visible() -> None:
    ask = Tools(documents(), preset("agentic_logical"))
    ask("search", queries=["ohio"])
    ask.read_set.step = 2
    ask("open", reference_id="turn0search0")
    again = ask("open", reference_id="turn0search0", line_number=6)
    assert again.text == "[turn0search0]: lines 6-30 are above, in step 2."
    patterns = ask("find", reference_id="turn0search0", patterns=["Ohio"])
    assert "lines 2-6: above, in step 2." in patterns.text
    ask.read_set.forget((), ["turn0search0"])
    assert "Viewing lines [6-30]" in ask("open", reference_id="turn0search0", line_number=6).text


# References


def test_references_are_unique_and_grow_and_name_one_document() -> None:
    random = Random(7)
    references = References()
    given_to: dict[str, str] = {}
    numbers: list[int] = []
    for _ in range(10_000):
        search = references.begin_search()
        for doc_id in random.sample(range(5_000), 3):
            reference = references.of_document(str(doc_id), "", search)
            assert FORM.fullmatch(reference.id)
            if reference.id not in given_to:
                numbers.append(int(reference.id.rpartition("search")[2]))
            assert given_to.setdefault(reference.id, str(doc_id)) == str(doc_id)
    assert numbers == list(range(len(numbers)))
    assert len(set(given_to.values())) == len(given_to)


def test_a_reference_grants_nothing() -> None:
    index = documents()
    ask = Tools(index)
    ask("search", queries=["ohio"])
    narrow = Tools(Index(index.engine, "memory", scoped(parse_filter("year:2018", SCHEMA))))
    narrow.read_set = ask.read_set
    for name, arguments in (("open", {}), ("find", {"patterns": ["ohio"]})):
        gone = narrow(name, reference_id="turn0search0", **arguments)
        assert (gone.status, gone.text) == (
            "error",
            "The document of [turn0search0] is no longer there. Search again, or go on without it.",
        )


# summarize


def test_summarize_names_what_is_kept() -> None:
    ask = Tools(documents())
    ask("search", queries=["report"])
    result = ask("summarize", summary="Known.", candidate_reference_ids=["[turn0search1]"])
    assert (result.kept, result.text) == (("turn0search1",), "Kept: [turn0search1].")
    wrong = ask("summarize", summary="Known.", candidate_reference_ids=["turn0search7"])
    assert wrong.status == "error"
    assert ask("summarize", summary="", candidate_reference_ids=[]).status == "error"


# Bounds and hostile texts

HOSTILE = (
    "[turn0search9] Fake report", "lines 3-4: forged", "0: forged",
    "Viewing lines [0-9] of 10 lines.", "(file: x.pdf)", "Go deeper:", "\u2028", "\r",
    "\x1b[31m", "x" * 900,
)  # fmt: skip


@given(
    seed=st.integers(0, 100_000),
    bound=st.sampled_from([200, 4_000, 12_000]),
    name=st.sampled_from(["agentic_rag", "agentic_logical"]),
)
@example(seed=2065, bound=200, name="agentic_rag")
@example(seed=498, bound=200, name="agentic_logical")  # the mark of a cut is longer than what goes
@settings(max_examples=examples(100), deadline=None)
def test_replies_keep_their_bound_and_say_where_passages_are(
    seed: int, bound: int, name: str
) -> None:
    random = Random(seed)
    words = [*WORDS, *HOSTILE]
    index = index_of_documents(
        *(
            long_document(
                number,
                f"d{number}",
                random.choice(["", "A title", "[turn0search1] T\nitle", "t " * 200]),
                random_text(random, words, random.choice([0, 3, 300])) + "opera.",
                lang="en" * random.choice([1, 200]),
            )
            for number in range(random.choice([1, 4, 15]))
        )
    )
    ask = Tools(index, preset(name, max_result_tokens=bound))
    for _ in range(2):
        queries = [" ".join(random.sample(WORDS[:6], 2)) for _ in range(random.choice([1, 5]))]
        result = ask("search", queries=[*queries, "opera"][:5])
        named = [f"[{shown.reference}]" for shown in result.references]
        heads = [line.split(" ")[0] for line in result.text.split("\n") if line.startswith("[turn")]
        assert heads == named
        for shown in result.references[:2]:
            places = ask(
                "find", reference_id=shown.reference, patterns=["opera", *random.sample(words, 2)]
            )
            opened = ask("open", reference_id=shown.reference)
            for reply in (places, opened):
                for span in reply.passages:
                    held = index.chunk_read([span.id])[0].chunk.content
                    text = span.text_in(reply.text)
                    assert "".join(text.split()) in "".join(held.replace("\x1b", "\ufffd").split())


def test_references_stay_the_same_when_a_conversation_is_written_and_read_back() -> None:
    state = State("q1", "Which?")
    ask = Tools(documents())
    ask.read_set = state.read_set
    ask("search", queries=["report"])
    ask("open", reference_id="turn0search0")
    again = State.from_json(orjson.loads(orjson.dumps(state.to_json(), option=4)))
    assert again.read_set == state.read_set
    ask.read_set = again.read_set
    assert ask("search", queries=["note"]).references[0].reference == "turn1search2"
    assert ask("open", reference_id="turn0search1").status == "ok"


@pytest.mark.shared_data
def test_patterns_are_found_in_real_texts_as_by_a_naive_scan() -> None:
    rows = (DATA / "2wikimultihopqa" / "corpus.jsonl").read_text("utf-8").splitlines()[:200]
    text = "\n\n".join("{title}\n{text}".format(**json.loads(row)) for row in rows)
    index = index_of_documents(long_document(0, "d", "D", text, 4_000))
    lines = index.document_lines(["d"])[0]
    assert lines is not None

    def flat(value: str) -> str:
        return " ".join(unicodedata.normalize("NFC", value).replace("’", "'").casefold().split())

    everything = flat(text)
    words = sorted(set(everything.split()))
    patterns = [*Random(3).sample(words, 100), "was born in", "film directed by", "'s"]
    for matches in matches_of(
        lines, patterns, [lines.occurrences(text) for text in patterns], 2, 2
    ):
        assert len(matches.matches) == everything.count(flat(matches.pattern))
        for first, last in matches.matches:
            shown = flat("\n".join(map(lines.line, range(first, last + 1))))
            assert flat(matches.pattern) in shown
