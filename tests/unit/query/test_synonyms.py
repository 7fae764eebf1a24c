"""Synonyms of a corpus: their file, and what becomes of a query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.errors import ConfigError
from arag_search.query.fields import Schema
from arag_search.query.limits import MAX_LEAVES
from arag_search.query.parser import parse
from arag_search.query.synonyms import Synonyms
from arag_search.query.tree import leaves

GROUPS = Synonyms({1: ("k8s", "kubernetes"), 2: ("tls", "ssl", "transport layer security")})
ENGLISH = Schema({"year": "number"}, language="en")
SCHEMA = replace(ENGLISH, synonyms=GROUPS.table("en"))


@pytest.mark.parametrize(
    ("query", "understood"),
    [
        ("k8s", "(k8s OR kubernetes)"),
        ("K8S AND pod", "((K8S OR kubernetes) AND pod)"),
        ("pod NOT k8s", "(pod AND NOT (k8s OR kubernetes))"),
        ("k8s^2", "(k8s^2 OR kubernetes^2)"),
        ("title:k8s", "(title:k8s OR title:kubernetes)"),
        ("pod OR k8s", "(pod OR k8s OR kubernetes)"),
        ("pod AND PREFER k8s", "(pod PREFER (k8s OR kubernetes))"),
        ("ssl", '(ssl OR tls OR "transport layer security")'),
        ('"transport layer security"', '("transport layer security" OR tls OR ssl)'),
        ('"ssl"', '("ssl" OR tls OR "transport layer security")'),
        ("k8s year:2020", "(k8s OR kubernetes OR year:2020)"),
    ],
)
def test_a_word_or_a_whole_phrase_becomes_its_alternatives(query: str, understood: str) -> None:
    assert parse(query, SCHEMA).understood == understood


@pytest.mark.parametrize(
    "query",
    ['"=k8s"', "kube*", "kubernete~1", '"k8s pod"', '"k8s pod"~3', "/k8s/ AND pod", "year:2020"],
)
def test_exact_words_and_longer_phrases_and_patterns_stay(query: str) -> None:
    assert parse(query, SCHEMA).understood == parse(query, ENGLISH).understood


def test_the_forms_of_a_word_have_its_synonyms_and_no_alternative_is_there_twice() -> None:
    groups = Synonyms({1: ("pod", "container")})
    schema = replace(ENGLISH, synonyms=groups.table("en"))
    assert parse("pods", schema).understood == "(pods OR container)"
    assert parse("pods OR containers", schema).understood == "(pods OR containers)"
    assert parse("Pod OR container OR x", schema).understood == "(Pod OR container OR x)"


def test_published_queries_and_indexes_without_forms(tmp_path: Path) -> None:
    assert parse("k8s", SCHEMA, published=True).understood == "k8s"
    schema = Schema(synonyms=GROUPS.table(""))
    assert parse("K8s AND tls", schema).understood == (
        '((K8s OR kubernetes) AND (tls OR ssl OR "transport layer security"))'
    )


@given(st.lists(st.sampled_from(["k8s", "tls", "ssl", "kubernetes", "pod"]), min_size=1))
def test_what_was_understood_is_understood_again_and_is_bounded(words: list[str]) -> None:
    for operator in (" OR ", " AND "):
        query = operator.join(words[:MAX_LEAVES])
        parsed = parse(query, SCHEMA)
        assert len(leaves(parsed.tree)) <= MAX_LEAVES
        if not any("synonyms" in note for note in parsed.notes):
            assert parse(parsed.understood, SCHEMA).understood == parsed.understood


def test_alternatives_that_are_too_many_are_left_out_with_a_note() -> None:
    parsed = parse(" AND ".join(["k8s", *(f"w{n}" for n in range(MAX_LEAVES - 2)), "tls"]), SCHEMA)
    assert len(leaves(parsed.tree)) == MAX_LEAVES
    assert [note for note in parsed.notes if "synonyms" in note] == [
        'the synonyms of "k8s" were left out, because the query has many words.',
        'the synonyms of "tls" were left out, because the query has many words.',
    ]


def test_a_file_has_groups_comments_and_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "synonyms"
    text = "\ufeff# of the team\n\nk8s = kubernetes\r\n"
    file.write_text(text + 'tls=ssl = "transport layer security"', "utf-8")
    assert list(Synonyms.of_file(file).groups.values()) == list(GROUPS.groups.values())


def test_all_problems_of_a_file_are_listed_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "synonyms"
    file.write_text("k8s kubernetes\na = \nb = c*\n" + " = ".join("defghijklmn") + "\n")
    with pytest.raises(ConfigError) as raised:
        Synonyms.of_file(file)
    assert (
        str(raised.value)
        .splitlines()[0]
        .startswith(
            "The file of synonyms has problems: line 1: there is no =; "
            'line 2: "" has nothing to search for; line 3: "c*" has a sign that no word has; '
            "line 4: 11 words, and at most 10 are allowed."
        )
    )
    file.write_text("a = b\nc = B\nd = d\n")
    with pytest.raises(ConfigError, match='line 2: "B" is in line 1 already; line 3: "d"'):
        Synonyms.of_file(file)
