"""Needs whose answer is a set: the people, the needs, the lines, and the whole command."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import chain
from pathlib import Path

import pytest

from arag_search.questions.files import load_questions
from arag_search.search.opening import open_index
from bench.__main__ import main
from bench.sets.lines import CAP_TOKENS, KNOWN, PAGES, values
from bench.sets.needs import DEPTHS, KINDS, MOST, Logic, Need
from bench.sets.people import BORN, Attribute, Person, attributes, person, words
from bench.sets.sets import made

PEOPLE = [person(number) for number in range(1_000)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the command, which leaves the set with its index beside the results."""
    results = tmp_path_factory.mktemp("sets") / "sets.json"
    asked = ["--documents", "1000", "--needs", "12", "--lines", f"words,rules,vectors,{KNOWN}"]
    work = ["--encoder", "hashing", "--work", str(results.parent), "--json", str(results)]
    assert main(["sets", *asked, *work]) == 0
    return results


@pytest.fixture(scope="module")
def folder(results: Path) -> Path:
    return results.parent / "people_1000"


@pytest.fixture(scope="module")
def drawn(folder: Path) -> list[Need]:
    """Draw the same needs as the command."""
    return made(folder, len(PEOPLE), 12)


def holds(logic: Logic, held: list[bool]) -> bool:
    """Judge one person by the logic."""
    if isinstance(logic, int):
        return held[logic]
    operator, first, *others = logic
    if operator == "but not":
        return holds(first, held) and not any(holds(other, held) for other in others)
    return {"and": all, "or": any}[operator](holds(part, held) for part in (first, *others))


def height(logic: Logic) -> int:
    return 1 if isinstance(logic, int) else 1 + max(map(height, logic[1:]))


def says(human: Person, attribute: Attribute) -> bool:
    """Read from the document alone whether an attribute is true of a person."""
    if attribute.kind == BORN:
        return attribute.years[0] <= human.document["born"] <= attribute.years[1]
    if not attribute.texts:
        return attribute.says == f"lives in {human.document['district']}"
    text = str(human.document["text"])
    return any(re.search(rf"\b{text_}(?=[.,;]| and )", text) for text_ in attribute.texts)


def test_the_same_seed_makes_the_same_people_and_a_larger_corpus_begins_with_a_smaller_one() -> (
    None
):
    assert person(7) == PEOPLE[7]
    assert person(7, seed=1).document["text"] != PEOPLE[7].document["text"]


def test_documents_say_what_is_true_of_people_and_nothing_else() -> None:
    for human in PEOPLE[:200]:
        for attribute in chain(*attributes().values()):
            assert says(human, attribute) == human.has(attribute), (
                human.document["text"],
                attribute,
            )


def test_a_third_of_the_values_is_never_said_in_the_words_of_needs() -> None:
    values = [attribute for kind in words()["values"] for attribute in attributes()[kind]]
    hidden = [attribute for attribute in values if attribute.is_hidden]
    assert len(hidden) * 3 == len(values)
    assert all(len(attribute.texts) == 2 for attribute in hidden)
    assert len(words()["phrasings"]) == 20


@pytest.mark.server
def test_every_need_is_about_the_people_that_brute_force_finds(drawn: list[Need]) -> None:
    for need in drawn:
        relevant = {
            human.document["_id"]
            for human in PEOPLE
            if holds(need.logic, [human.has(attribute) for attribute in need.attributes])
        }
        assert need.relevant == relevant, need.text
        assert 1 <= len(relevant) <= MOST
        assert not need.excluded & relevant
        assert bool(need.excluded) == ("NOT" in need.query)


@pytest.mark.server
def test_needs_have_all_depths_and_classes_and_say_each_attribute_once(drawn: list[Need]) -> None:
    assert {(need.depth, need.kind) for need in drawn} == {
        (depth, kind) for depth in DEPTHS for kind in KINDS
    }
    for need in drawn:
        assert height(need.logic) == need.depth
        for attribute in need.attributes:
            assert need.text.count(attribute.says) == 1
        is_hidden = any(attribute.is_hidden for attribute in need.attributes)
        assert is_hidden == (need.kind == "hidden")


@pytest.mark.server
def test_the_known_query_is_exact_but_where_documents_have_other_words(
    folder: Path, drawn: list[Need]
) -> None:
    with open_index(folder / "index") as index:
        for need in drawn:
            hits = index.logical_search(need.query, top_k=1_000, snippets=False).hits
            assert {hit.doc_id for hit in hits} == set(need.relevant) or need.kind == "hidden", (
                need.query
            )
        for attribute in chain(*attributes().values()):
            hits = index.logical_search(attribute.query, top_k=1_000, snippets=False).hits
            true = {human.document["_id"] for human in PEOPLE if human.has(attribute)}
            expected = set[str]() if attribute.is_hidden else true
            assert {hit.doc_id for hit in hits} == expected
    (first, *_) = load_questions(folder)
    assert first.text == drawn[0].text
    assert {id for id, _ in first.relevant_documents} == drawn[0].relevant


def test_a_set_is_held_on_the_page_of_its_last_document_and_else_costs_all_pages() -> None:
    need = Need("n", "", "", frozenset("ab"), frozenset("x"))
    tokens = dict.fromkeys(["a", "b", "x", *map(str, range(30))], 10)
    ranked = ["a", "x", *map(str, range(30)), "b"]
    got = values(ranked, need, tokens)
    assert (got["held"], got["calls"], got["tokens"]) == (True, 2, 330)
    assert got["R@10"] == 0.5
    assert got["R@100"] == 1
    assert got["broken@10"] == pytest.approx(0.1)
    assert got["nDCG@10"] == pytest.approx(1 / (1 + 1 / 1.5849625), abs=1e-6)
    assert (got["exact"], got["best exact"]) == (False, False)
    assert got["best F1"] == pytest.approx(2 / 3)
    assert got["F1"] == pytest.approx(4 / 35)
    lacking = values(["a"], need, tokens)
    assert (lacking["held"], lacking["calls"], lacking["tokens"]) == (False, PAGES, CAP_TOKENS)
    assert values([], need, tokens)["best F1"] == 0
    assert values(["b", "a"], need, tokens)["exact"]
    assert values(["b", "a", "x"], need, tokens)["best exact"]


@pytest.mark.server
def test_the_command_measures_and_draws_and_says_what_the_figures_depend_on(results: Path) -> None:
    figure = json.loads(results.read_text())["figures"]["people_1000"]
    rows = {row["what"]: row for row in figure["rows"]}
    assert rows[f"plain: {KNOWN}, exact"]["value"] == 1
    assert rows[f"hidden: {KNOWN}, exact"]["value"] == 0
    low, high = rows["depth 2: words, nDCG@10"]["range"]
    assert 0 < low < rows["depth 2: words, nDCG@10"]["value"] < high <= 1
    assert figure["details"]["needs"]["all"] == 48
    picture = ElementTree.parse(results.with_suffix(".svg"))
    lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2 * 4
    assert [bool(line.get("class")) for line in lines] == [False] * 3 + [True] * 5


def test_limit_is_measured_as_published(tmp_path: Path) -> None:
    people = {"Ann": "Ann likes Quokkas, Tea.", "Bo": "Bo likes Tea.", "Cy": "Cy likes Limes."}
    lines = [json.dumps({"_id": id, "title": "", "text": text}) for id, text in people.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "Who likes Tea?"}\n')
    judged = [{"query-id": "q", "corpus-id": id, "score": 1} for id in ("Ann", "Bo")]
    (tmp_path / "qrels.jsonl").write_text("\n".join(map(json.dumps, judged)))
    results = tmp_path / "limit.json"
    asked = ["--limit", str(tmp_path), "--lines", f"words,{KNOWN}", "--json", str(results)]
    assert main(["sets", *asked, "--work", str(tmp_path / "work")]) == 0
    rows = {
        row["what"]: row["value"]
        for row in json.loads(results.read_text())["figures"]["LIMIT"]["rows"]
    }
    assert rows[f"all: {KNOWN}, exact"] == 1
    assert rows["all: words, exact"] == 0
