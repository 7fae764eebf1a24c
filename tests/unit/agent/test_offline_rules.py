"""The rules of the offline model, one by one: names, questions, replies, relations, values."""

from __future__ import annotations

import pytest

from arag_search.agent.models.offline.answers import date_key, value_of
from arag_search.agent.models.offline.countries import countries_of, first_country
from arag_search.agent.models.offline.names import fold, names_in, people_in, plain, without_rank
from arag_search.agent.models.offline.queries import (
    for_any,
    for_content,
    for_name,
    for_words_of,
    lowering,
    without_operators,
)
from arag_search.agent.models.offline.questions import Sought, parse_question
from arag_search.agent.models.offline.relations import RELATIONS, related
from arag_search.agent.models.offline.replies import SeenPassage, read_reply
from arag_search.query.fields import Schema
from arag_search.query.parser import parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("He married Maria of Spain in Madrid.", ["Maria of Spain", "Madrid"]),
        ("The son of Robert II, Count of Dreux, and Anna.", ["Robert II, Count of Dreux", "Anna"]),
        ("It was designed by John A. Roebling.", ["John A. Roebling"]),
        ("In London she met Vivaldi's father.", ["London", "Vivaldi"]),
        ("they are none", []),
    ],
)
def test_names_are_runs_of_capitals_with_small_words_between(text: str, names: list[str]) -> None:
    assert [name.text for name in names_in(text)] == names


def test_an_attribute_before_a_name_is_no_person() -> None:
    text = "She was the wife of the Irish physicist John Tyndall in May 1876."

    assert [person.text for person in people_in(text)] == ["John Tyndall"]


def test_names_are_compared_without_case_accents_articles_and_apostrophes() -> None:
    assert fold("The Café O’Brien") == fold("cafe o'brien")
    assert without_rank("Queen Anne") == "Anne"
    assert without_rank("Queen") == "Queen"


@pytest.mark.parametrize(
    ("text", "form", "names", "hops", "sought"),
    [
        ("Who is the father of the director of film Big Eye?",
         "open", ("Big Eye",), ("director", "father"), "person"),
        ("When did Anna Boe's mother die?", "open", ("Anna Boe",), ("mother",), "death date"),
        ("Who is Anna Boe's father-in-law?",
         "open", ("Anna Boe",), ("spouse", "father"), "person"),
        ("Where was the author of The Sea born?", "open", ("The Sea",), ("author",), "birth place"),
        ("Which film came out first, The Sea or A Day?",
         "choice", ("The Sea", "A Day"), (), "date"),
        ("Are Wiqu (Lima) and Qillqa both located in the same country?",
         "yes_no", ("Wiqu (Lima)", "Qillqa"), (), "country"),
        ("Was Ann Lee or Bob Ray born first?", "choice", ("Ann Lee", "Bob Ray"), (), "birth date"),
    ],
)  # fmt: skip
def test_a_question_is_parsed(
    text: str, form: str, names: tuple[str, ...], hops: tuple[str, ...], sought: Sought
) -> None:
    question = parse_question(text)

    assert (question.form, question.names, question.hops, question.sought) == (
        form,
        names,
        hops,
        sought,
    )


def test_a_name_in_a_question_may_contain_a_comma_or_a_colon() -> None:
    question = parse_question(
        "Which is older, Wrong Turn 5: Bloodlines or Hermann II, Duke of Bohn?"
    )

    assert question.names == ("Wrong Turn 5: Bloodlines", "Hermann II, Duke of Bohn")
    assert question.order == "least"


def test_a_reply_is_read_with_its_titles_texts_and_total() -> None:
    text = (
        '2 of 27 passages for ("a b" AND c)\n'
        'Note: lower-case "and" was searched as a word.\n'
        "[5012.1] Griselda (Vivaldi)\n"
        "Griselda is an opera. ... It was revised.\n"
        "[881.2] Antonio Vivaldi, part 2 of 3\n"
        "He died in Vienna.\n"
        "More: offset=2. Full text: chunk_read."
    )

    reply = read_reply(text)

    assert reply.total == 27
    assert reply.passages == (
        SeenPassage(
            "5012.1", "Griselda (Vivaldi)", "Griselda is an opera. ... It was revised.", False
        ),
        SeenPassage("881.2", "Antonio Vivaldi", "He died in Vienna.", True),
    )


def test_a_passage_read_in_full_is_whole_and_one_read_before_is_skipped() -> None:
    text = (
        "[a.1] Title\n(next: a.2; year: 1678)\nText ... more.\n[b] This chunk has been read before."
    )

    assert read_reply(text, whole=True).passages == (
        SeenPassage("a.1", "Title", "Text ... more.", True),
    )


def test_an_empty_reply_has_no_passages() -> None:
    reply = read_reply('No passage matches "x".\nAlone: "x" occurs nowhere.')

    assert (reply.passages, reply.total) == ((), 0)


@pytest.mark.parametrize(
    ("relation", "text", "names"),
    [
        ("director", "It is a film directed by Ann Lee and Bob Ray.", ["Ann Lee", "Bob Ray"]),
        ("father", "He was the son of Otto and his wife Adelheid.", ["Otto"]),
        ("mother", "He was the son of Otto and his wife Adelheid.", ["Adelheid"]),
        ("spouse", "She was the wife of the Irish physicist John Tyndall.", ["John Tyndall"]),
        ("spouse", "He is known for Katherine Mansfield, whom he married in 1918.",
         ["Katherine Mansfield"]),
        ("director", "Nobody is named here.", []),
    ],
)  # fmt: skip
def test_the_other_end_of_a_relation_is_found_beside_its_cue(
    relation: str, text: str, names: list[str]
) -> None:
    assert related(text, RELATIONS[relation], "Thing")[: len(names) or 1] == names


@pytest.mark.parametrize(
    ("sought", "text", "value"),
    [
        ("birth date", "Ann (4 May 1879 – 29 April 1932) was Swiss.", "4 May 1879"),
        ("death date", "Ann (4 May 1879 – 29 April 1932) was Swiss.", "29 April 1932"),
        ("birth date", "Ann (born June 1, 1966) is a poet.", "June 1, 1966"),
        ("birth place", "She was born in Santa Rosa, California.", "Santa Rosa"),
        ("death place", "He moved to Paris, where he wrote and died.", "Paris"),
        ("country", "Ann is a Cuban-American poet.", "Cuban-American"),
        ("date", "The Sea is a 1937 British film.", "1937"),
        ("award", "She won the Nobel Prize in 1911.", "Nobel Prize"),
        ("birth date", "Nothing is known.", None),
    ],
)
def test_a_value_is_the_span_that_the_passage_states(
    sought: Sought, text: str, value: str | None
) -> None:
    assert value_of(sought, text) == value


def test_dates_are_ordered_by_year_month_and_day() -> None:
    assert date_key("29 April 1932") == (1932, 4, 29)
    assert date_key("April 29, 1932") == (1932, 4, 29)
    assert date_key("851") == (851, 0, 0)


def test_nationalities_belong_to_countries() -> None:
    assert first_country("a Dutch or American thing") == "Dutch"
    assert countries_of("Scottish") == countries_of("the United Kingdom")
    assert countries_of("Swiss") != countries_of("Swedish")


@pytest.mark.parametrize(
    "query",
    [
        for_name("Possession (1922 Film)", ("directed", "director")),
        for_name('A "quoted" * name\\', ()),
        for_name("Robert II, Count of Dreux", ("son",)),
        for_words_of("Bahram NOT Bayzai's", all_of_them=True),
        for_words_of("Bahram OR Bayzai", all_of_them=False),
        for_content(("O’Neill", "A/B"), ("country", "it's")),
        for_any("Who wrote (this): AND that*?"),
    ],
)
def test_every_query_is_valid_in_the_query_language(query: str) -> None:
    assert parse(query, Schema({})).tree


def test_operators_can_be_left_out_and_phrases_stay() -> None:
    query = for_name("Broadway OR (Bust)", ("son", "child"))

    assert without_operators(query) == (
        'title:"Broadway OR (Bust)"^8 title:"Broadway OR"^4 "Broadway OR" son child'
    )


def test_a_name_without_a_word_gives_no_query() -> None:
    assert for_name("?!") == ""
    assert for_words_of("of the", all_of_them=True) == ""


def test_blanks_are_normalised_around_punctuation() -> None:
    assert plain('Anna( died 875) was" x"') == 'Anna (died 875) was "x"'


@pytest.mark.parametrize(
    ("text", "excluded", "rest"),
    [
        ("Which composers other than Antonio Vivaldi wrote operas in Venice?", "Antonio Vivaldi",
         "Which composers wrote operas in Venice?"),
        ("Apart from Venice, where did Domenico Scarlatti work?", "Venice",
         "where did Domenico Scarlatti work?"),
        ("Where did Vivaldi live, except for the city of Venice?", "Venice",
         "Where did Vivaldi live ?"),
        ("What did the Reformation change, but not its effect on religious practice?",
         "religious practice", "What did the Reformation change ?"),
        ("Who built the bridge without steel?", "steel", "Who built the bridge ?"),
    ],
)  # fmt: skip
def test_what_a_question_excludes_is_no_part_of_what_it_asks(
    text: str, excluded: str, rest: str
) -> None:
    asked = parse_question(text)

    assert (asked.excluded, asked.text) == (excluded, rest)
    assert excluded not in asked.names


@pytest.mark.parametrize(
    "text",
    [
        "Who directed the film Man Without a Star?",
        'Who wrote the song "nothing but not everything"?',
        "Which city without an airport hosted the Olympic Games?",
        "Where did Vivaldi live other than Venice and Vienna?",
        "Without him?",
    ],
)
def test_an_exclusion_that_no_rule_recognises_stays_in_the_question(text: str) -> None:
    asked = parse_question(text)

    assert (asked.excluded, asked.text) == ("", text)


@pytest.mark.parametrize(
    ("excluded", "query"),
    [
        ("steel", "((a OR b) DEMOTE steel)"),
        ("religious practice", '((a OR b) DEMOTE "religious practice")'),
        ("OR", '((a OR b) DEMOTE "OR")'),
    ],
)
def test_what_is_excluded_lowers_all_of_a_query(excluded: str, query: str) -> None:
    assert str(parse(lowering("a OR b", excluded), Schema()).tree) == query
