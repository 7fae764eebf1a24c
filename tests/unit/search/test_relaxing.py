"""Queries that find nothing get the nearest passages, and branches that are not on the page are
heard."""

from __future__ import annotations

import pytest

from arag_search.query.reading import parse
from arag_search.search.advice.parts import Parts
from arag_search.search.advice.relaxing import MAX_RELAXED_CLAUSES, relaxed_queries
from arag_search.search.index import Index
from arag_search.tools.passages.search import reply
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet, ToolResult
from arag_search.tools.toolbox import tools_of
from tests.support.passages import SCHEMA, VIVALDI, chunk, index_of
from tests.support.plans import planned

BRIDGES = chunk(7, "bridges", "Bridges", "The Rialto bridge crosses the canal.", lang="en")


@pytest.fixture(name="relaxed")
def index_to_relax() -> Index:
    return index_of(*VIVALDI, BRIDGES)


def run(index: Index, **arguments: object) -> ToolResult:
    tool = tools_of(load_preset("logical_read"), index)["logical_search"]
    return tool.run(arguments, ReadSet())


def test_the_passages_that_miss_the_fewest_conditions_are_shown(relaxed: Index) -> None:
    result = run(relaxed, query='"antonio vivaldi" AND gondola AND goldoni NOT older')
    assert (result.status, result.total, result.ids) == ("empty", 0, ())
    assert result.text.splitlines()[2:] == [
        "Nearest, without gondola:",
        "[griselda.1] Griselda (Vivaldi) (whole document)",
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. Its libretto was "
        "revised by the young Carlo Goldoni.",
    ]
    assert [(span.id, span.kind) for span in result.passages] == [("griselda.1", "nearest")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # The group is left out, not the name or the word beside it
        (
            "griselda AND libretto AND (canal OR bridge OR gondola)",
            {"(canal OR bridge OR gondola)"},
        ),
        ("(canal OR gondola) AND priest", {"(canal OR gondola)"}),
        ("died AND rialto", {"died"}),
        # Two steps away; frequent words alone, in one condition or two
        ("rialto AND gondola AND priest", set[str]()),
        ("died AND gondola", set[str]()),
        ("died AND here AND gondola", set[str]()),
        ('"died here" AND gondola', {"gondola"}),
    ],
)
def test_one_step_away_is_near_with_the_rarest_condition_and_without_the_widest(
    query: str, expected: set[str]
) -> None:
    frequent = [chunk(n, f"d{n}", "", "She died here.") for n in range(10, 40)]
    near = index_of(*VIVALDI, BRIDGES, *frequent).logical_search(query, relax=True).nearest
    assert {lack for hit in near for lack in hit.lacks} == expected


def test_nothing_is_near_that_was_shown_before(relaxed: Index) -> None:
    tool, shown = tools_of(load_preset("logical_read"), relaxed)["logical_search"], ReadSet()
    texts = [tool.run({"query": "rialto AND gondola"}, shown).text for _ in range(2)]
    assert ["[bridges.1]" in text for text in texts] == [True, False]


def test_every_alternative_of_an_or_is_relaxed(relaxed: Index) -> None:
    query = "(rialto AND nowhere) OR (goldoni AND venice AND none NOT older)"
    near = relaxed.logical_search(query, relax=True).nearest
    assert {hit.id: hit.lacks for hit in near} == {
        "bridges.1": ("nowhere",),
        "griselda.1": ("none",),
    }
    near = relaxed.logical_search("(rialto AND no NOT canal) OR (bridge AND none)", relax=True)
    assert [hit.lacks for hit in near.nearest] == [("none",)]


def test_the_weights_of_groups_order_the_passages_nearest_to_them(relaxed: Index) -> None:
    for first, second in ((0.01, 100), (100, 0.01)):
        query = f"(rialto AND nowhere)^{first} OR (goldoni AND none)^{second}"
        near = relaxed.logical_search(query, relax=True).nearest
        alone = relaxed.logical_search(f"rialto^{first} OR goldoni^{second}").hits
        assert [(hit.id, hit.score) for hit in near] == [(hit.id, hit.score) for hit in alone]
        assert [hit.id for hit in near] == sorted(
            ("bridges.1", "griselda.1"), reverse=second > first
        )


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        ("(a^2 AND b)^3", ["(a^6 OR b^3)"]),
        ("((a AND b)^2 OR (c AND d))^3", ["(a^2 OR b^2 OR c OR d)^3"]),
        ("(a AND lang:en)^2", ["(a^2 OR lang:en)"]),  # what only filters has no weight
        ('(("a b"~3^2 OR c)^3 AND d)^4', ['(("a b"~3^2 OR c)^12 OR d^4)']),
        ("(title:abc~1^2 AND b NOT c)^2", ["((title:abc~1^2 AND NOT c)^2 OR (b AND NOT c)^2)"]),
        ("(a AND b DEMOTE^0.2 c)^2", ["((a DEMOTE^0.2 c)^2 OR (b DEMOTE^0.2 c)^2)"]),
    ],
)
def test_what_is_left_of_a_group_keeps_its_weight(query: str, steps: list[str]) -> None:
    root = planned(parse(query, SCHEMA).tree).root
    assert [step.text for step in relaxed_queries(root)] == steps


def test_an_alternative_alone_keeps_the_weights_around_it() -> None:
    def searches(query: str) -> list[str]:
        of_query = Parts(planned(parse(query, SCHEMA).tree).root, operators=True)
        return [search.text for _, search in of_query.searches()]

    inner = '(venice AND ("a b"^2 OR title:c)^10 NOT old)^3'
    assert searches(inner) == [
        '(venice AND "a b"^20 AND NOT old)^3', "(venice AND title:c^10 AND NOT old)^3"
    ]  # fmt: skip
    assert searches('("a b"^2 OR title:c)^3') == ['"a b"^6', "title:c^3"]


def test_exclusions_and_scopes_hold(relaxed: Index) -> None:
    assert relaxed.logical_search("griselda AND nowhere NOT opera", relax=True).nearest == ()
    within = relaxed.logical_search("venice AND nowhere", relax=True, filter="year:<=1700")
    assert [near.id for near in within.nearest] == ["vivaldi.1"]


def test_a_passage_that_meets_all_but_in_no_single_sentence_is_nearest(relaxed: Index) -> None:
    result = relaxed.logical_search("taught AND wrote", granularity="sentence", relax=True)
    line = "\nIn no single sentence, but in these passages:\n[vivaldi.1]"
    assert line in reply(result, load_preset("logical_read"), ReadSet()).text


def test_only_conditions_are_relaxed_and_only_up_to_a_number_of_clauses() -> None:
    def steps(query: str) -> int:
        return len(relaxed_queries(planned(parse(query, SCHEMA).tree).root))

    words = [f"w{number}" for number in range(MAX_RELAXED_CLAUSES + 1)]
    assert steps("(a AND b) OR (c AND d AND e)") == 2
    assert steps("a OR b") == steps('"a b"') == steps("a NOT b") == 0
    assert (steps("a AND b"), steps("a AND b AND c NOT d")) == (1, 2)
    assert steps(" AND ".join(words)) == 0
    assert steps(" AND ".join(words[:MAX_RELAXED_CLAUSES])) >= 2


def test_without_relaxing_nothing_is_near(relaxed: Index) -> None:
    result = relaxed.logical_search("venice AND nowhere")
    assert (result.nearest, "nearest" in result.to_dict()) == ((), False)
    shown = relaxed.logical_search("venice AND nowhere", relax=True).to_dict()["nearest"]
    assert {near["id"]: near["lacks"] for near in shown} == {
        "vivaldi.1": ["nowhere"], "griselda.1": ["nowhere"]
    }  # fmt: skip


def test_parts_are_counted_and_a_branch_without_a_hit_is_heard(relaxed: Index) -> None:
    query = '"antonio vivaldi" OR "rialto bridge" OR "no such phrase"'
    result = run(relaxed, query=query, top_k=1)
    lines = result.text.splitlines()
    assert lines[1] == 'Alone: "no such phrase" occurs nowhere.'
    assert result.ids == ("bridges.1",) or "[bridges.1]" in result.text
    heard = run(relaxed, query=query, top_k=1, offset=1)
    assert "Best for" not in heard.text
    everything = run(relaxed, query=query)
    assert "Best for" not in everything.text


def test_order_and_total_of_the_page_do_not_change(relaxed: Index) -> None:
    query = 'title:vivaldi OR "rialto bridge" OR (priest AND violin)'
    plain = relaxed.logical_search(query, top_k=2)
    heard = relaxed.logical_search(query, top_k=2, branches=True)
    assert (heard.hits, heard.total) == (plain.hits, plain.total)
    assert [str(part) for part in heard.branches] == [
        "title:vivaldi 3", '"rialto bridge" 1', "(priest AND violin) 1", "priest 1", "violin 1"
    ]  # fmt: skip


def test_keywords_are_counted(relaxed: Index) -> None:
    result = relaxed.keyword_search(["Venice", "gondola", "..."], branches=True)
    assert [str(part) for part in result.branches] == ['"Venice" 2', '"gondola" occurs nowhere']
    assert relaxed.keyword_search(["Venice"], branches=True).branches == ()
    within = relaxed.keyword_search(["Venice", "opera"], branches=True, filter="year:<1700")
    assert [part.count for part in within.branches] == [1, 0]


def test_an_alternative_without_a_passage_on_the_page_takes_its_last_place(relaxed: Index) -> None:
    query = 'venice OR "antonio vivaldi"^5 OR (rialto AND bridge)'
    by_score = [hit.id for hit in relaxed.logical_search(query).hits]
    assert by_score.index("bridges.1") > 1
    # Before, the passage stood below the page, under "Best for (rialto AND bridge):".
    first = run(relaxed, query=query, top_k=2)
    assert first.ids[:2] == (by_score[0], "bridges.1")
    assert "Best for" not in first.text
    second = run(relaxed, query=query, top_k=2, after="2")
    assert second.text.startswith(f"Passages 3 to 4 of {len(by_score)}\n[{by_score[1]}]")
    assert [*first.ids[:2], *second.ids[:2]] == [
        by_score[0], "bridges.1", *(id for id in by_score[1:] if id != "bridges.1")
    ][:4]  # fmt: skip


def test_a_dead_alternative_is_named_by_what_failed_and_shows_the_passage_nearest_to_it(
    relaxed: Index,
) -> None:
    # Before: 'Alone: ("the rialto bridge" AND "crosses th... 0; ...', and no passage.
    query = 'griselda OR ("the rialto bridge" AND "crosses the canal" AND venice)'
    text = run(relaxed, query=query, top_k=2).text
    assert text.splitlines()[1].startswith("Alone: (... AND venice) 0. ")
    assert "\nNearest, without venice:\n[bridges.1] Bridges (whole document)\n" in text
    # A word that occurs nowhere is named once.
    line = run(relaxed, query="griselda OR (rialto AND gondola)").text.splitlines()[1]
    assert line == "Alone: gondola occurs nowhere. All shown: rialto 1."


def test_a_frequent_word_beside_names_is_no_alternative(relaxed: Index) -> None:
    chunks = [chunk(n, f"d{n}", "", f"She died in {n}.") for n in range(10, 20)]
    query = '"antonio vivaldi"^9 born died'
    assert "Best for" not in run(index_of(*VIVALDI, *chunks), query=query, top_k=1).text
    assert "Best for died:" in run(index_of(*VIVALDI, *chunks[:3]), query=query, top_k=1).text


def test_plain_words_are_counted_unless_all_that_they_find_is_shown(relaxed: Index) -> None:
    words = "venice opera priest zebra"
    result = relaxed.logical_search(words, top_k=1, branches=True)
    assert [(part.clause, part.count) for part in result.branches] == [
        (word, relaxed.logical_search(word).total) for word in words.split()
    ]
    assert result.unrepresented == ()
    assert relaxed.logical_search("venice OR opera OR priest", branches=True).branches == ()


def test_a_conjunction_that_finds_next_to_nothing_says_what_its_conditions_find_alone(
    relaxed: Index,
) -> None:
    result = relaxed.logical_search('"antonio vivaldi" AND priest', branches=True)
    assert [(part.clause, part.count) for part in result.branches] == [
        ('"antonio vivaldi"', 3), ("priest", 1)
    ]  # fmt: skip
    named = {branch.title for branch in result.unrepresented}.union(
        result.branches[0].titles.values()
    )
    assert named == {"Antonio Vivaldi", "Griselda (Vivaldi)"}
    line = run(relaxed, query="goldoni AND libretto AND griselda").text.splitlines()[1]
    assert line == "Alone: libretto 2: also Antonio Vivaldi. griselda 2: also Griselda (Scarlatti)."


def test_an_alternative_in_a_conjunction_without_a_hit_on_the_page_shows_its_best(
    relaxed: Index,
) -> None:
    query = '("antonio vivaldi" OR "rialto bridge") AND (venice OR bridge)'
    text = run(relaxed, query=query, top_k=1).text
    shown, _, beside = text.partition("\nBest for ")
    assert beside
    assert ("[bridges.1]" in shown) != ("[bridges.1]" in beside)
    assert "Best for" not in run(relaxed, query=query, top_k=5).text
