"""Front matter of Markdown: what is read of it, what stays text, and the types of its fields."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_jobs.sources.converters.front_matter import NO_FRONT_MATTER, front_matter
from index_jobs.sources.converters.text import front_values
from index_jobs.sources.metadata import (
    EXTRA,
    FILE_FIELDS,
    MAX_FRONT_FIELDS,
    MAX_KEYWORD_BYTES,
    MetadataReader,
)
from tests.support.converted import document_of, written

OBSIDIAN = """\
---
title: "Alice: a life"
tags:
  - people
  - "#oxford"
aliases: [Alice, A. Liddell]
born: 1852-05-04
up: "[[People|all]]"
related: [[Dodgson]]
cssclasses: wide
empty:
nothing: ~
open: No
done: True
time: 12:30
zip: 01234
version: 1.10
about: >
  two
  lines
---
Text.
"""
LINES = OBSIDIAN.count("\n") - 1
HUGO = """\
+++
title = 'Deploying'
date = 2023-11-02T08:15:00+01:00
draft = true
tags = ["ops", "web dev"]
weight = 10
version = 1.10
[params]
author = "Ada"
[[params.links]]
url = "a"
[[params.links]]
url = "b"
+++
Text.
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_properties_of_obsidian_are_read(tmp_path: Path, newline: str, encoding: str) -> None:
    text = OBSIDIAN.replace("\n", newline)
    document = document_of(written(tmp_path / "a.md", text.encode(encoding)))
    assert (document.title, document.text) == ("Alice: a life", LINES * "\n" + f"Text.{newline}")
    assert document.unread == {}
    assert document.front == {
        "tags": ("people", "oxford"), "aliases": ("Alice", "A. Liddell"),
        "born": ("1852-05-04",), "up": ("People",), "related": ("Dodgson",),
        "cssclasses": ("wide",), "open": ("No",), "done": ("true",), "time": ("12:30",),
        "zip": ("01234",), "version": ("1.10",), "about": ("two lines",),
    }  # fmt: skip
    assert front_values(tmp_path / "a.md", "a.md") == document.front


def test_parameters_of_hugo_are_read(tmp_path: Path) -> None:
    document = document_of(written(tmp_path / "a.markdown", HUGO))
    assert (document.title, document.text) == (
        "Deploying",
        (HUGO.count("\n") - 1) * "\n" + "Text.\n",
    )
    assert document.front == {
        "date": ("2023-11-02T08:15:00+01:00",),
        "draft": ("true",),
        "tags": ("ops", "web dev"),
        "weight": ("10",),
        "version": ("1.10",),
        "params.author": ("Ada",),
        "params.links.url": ("a", "b"),
    }


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("a, b c,", ("a", "b c")),
        ('"#a #b/c"', ("a", "b/c")),
        ("web dev", ("web dev",)),
        ("[a, '#b', a]", ("a", "b")),
        ("a\ntags: b", ("a", "b")),
        ("#a #b", ()),
    ],
)
def test_tags_are_a_list_or_one_text(value: str, tags: tuple[str, ...]) -> None:
    read = front_matter(f"---\ntags: {value}\n---\n").values
    assert read == ({"tags": tags} if tags else {})


@pytest.mark.parametrize(
    "text",
    [
        "---\nA rule at the beginning, and no other.\n",
        "---\nProse between rules.\n---\nMore.",
        "---\n\nNote: prose between rules.\n\n---\nMore.",
        "---\n## A heading: between rules\n---\n",
        "---\n- An item: between rules\n---\n",
        "----\na: 1\n----\n",
        "\n---\na: 1\n---\n",
        " ---\na: 1\n---\n",
        "---\na: 1\n ---\n",
        "+++\na = 1\n---\n",
    ],
)
def test_rules_are_no_front_matter(text: str) -> None:
    assert front_matter(text) == NO_FRONT_MATTER


@pytest.mark.parametrize(
    ("matter", "problem"),
    [
        ("title: Foo: Bar", "that is no YAML"),
        ("title: {{ title }}", "that is no YAML"),
        ("people: [[A]], [[B]]", "that is no YAML"),
        ("title: x\n\tb: y", "that is no YAML"),
        ("handle: @me", "that is no YAML"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "that is no YAML"),
        ("a: " + "[" * 30_000 + "]" * 30_000, "that is no YAML"),
        ("a: " + "x" * 70_000, "longer than 65,536 characters"),
        ("a: [" + "1," * 1_001 + "]", "with more than 1,000 values"),
    ],
)
def test_what_cannot_be_read_stays_text_and_is_counted(
    tmp_path: Path, matter: str, problem: str
) -> None:
    text = f"---\n{matter}\n---\n# Heading\n"
    began = time.process_time()
    document = document_of(written(tmp_path / "a.md", text))
    assert time.process_time() - began < 5
    assert (document.title, document.text, document.front) == ("Heading", text, {})
    assert document.unread == {f"front matter {problem}, kept as text": 1}


@pytest.mark.parametrize(
    "matter", ["a = 1\na = 2", "a = " + "[" * 20_000 + "]" * 20_000, "a." * 30_000 + "b = 1"]
)
def test_toml_that_cannot_be_read_is_left_at_once(matter: str) -> None:
    began = time.process_time()
    assert front_matter(f"+++\n{matter}\n+++\n").problem == "that is no TOML"
    assert time.process_time() - began < 3


def test_tags_of_yaml_make_no_objects() -> None:
    text = "---\na: !!python/object/apply:os.system [x]\nb: !mine 1\nc: !!binary eA==\n---\n"
    assert front_matter(text).values == {"a": ("x",), "b": ("1",), "c": ("eA==",)}


SIGNS = "ab:-[]{}#&*!|>'\"%@` \n=.,+\\"


@given(st.text(alphabet=SIGNS, max_size=60), st.sampled_from(["---", "+++"]))
def test_any_front_matter_is_read_or_stays(matter: str, fence: str) -> None:
    front = front_matter(f"{fence}\n{matter}\n{fence}\nbody")
    assert all(texts and all(texts) for texts in front.values.values())
    assert not (front.problem and (front.values or front.title))
    assert not front.length or front.lines >= 2


# Fields


def reader(*matters: dict[str, tuple[str, ...]], **declared: str) -> MetadataReader:
    """Return the reader of an index with this front matter."""
    metadata = MetadataReader(declared)  # type: ignore[arg-type]
    metadata.expect_files()
    metadata.expect_front_matter(matters)
    return metadata


CODES = ("01234", "1.10", "4.50", "+5", "1e3", "-0", ".5", "5.", "0.12345678901234567890")
"""Values that would be written otherwise as numbers."""


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (("1", "2.5", "-300", "0", "4.0"), "number"),
        (("1", "2", "3", "4", "five"), "number"),
        (("1", "2", "three"), "keyword"),
        (("01234", "1"), "keyword"),
        *((("1", "2", "3", "4", "5", code), "keyword") for code in CODES),
        (("1", "2", "3", "4", "0x10"), "number"),
        (("1", "2", "3", "4", "1_000"), "number"),
        (("12345678901234567890",), "keyword"),
        (("true", "false"), "boolean"),
        (("true", "false", "maybe"), "keyword"),
        (("yes", "no"), "keyword"),
        (("2024", "2023"), "number"),
        (("2024-01", "2024-01-05", "2024-01-05T10:30", "2024-01-05 10:30:00 +0800"), "date"),
        (("2024-01-05", "soon"), "date"),
        (("2024-02-30", "soon", "2024-01-05"), "keyword"),
        (("12:30",), "keyword"),
    ],
)
def test_types_are_those_of_most_values(texts: tuple[str, ...], kind: str) -> None:
    assert reader({"x": texts}).new_fields["x"] == kind


def test_values_that_do_not_fit_are_text_in_extra_and_counted() -> None:
    metadata = reader(*[{"n": ("1",)}] * 9, {"n": ("one", "2"), "long": ("x" * 5_000,)})
    assert metadata.new_fields == {"n": "number", "long": "keyword", EXTRA: "keyword"}
    values, left = metadata.read_front({"n": ("one", "2"), "long": ("x" * 5_000,)})
    first, second = values.pop(EXTRA)  # type: ignore[misc]
    assert (values, first) == ({"n": 2}, "n: one")
    assert second == f"long: {'x' * (MAX_KEYWORD_BYTES - 10)} ..."
    assert left == {
        'values of "n" in front matter that are no number, kept as text in "extra"': 1,
        'values of "long" in front matter that are no keyword, kept as text in "extra"': 1,
    }


@pytest.mark.parametrize("code", CODES)
def test_a_number_that_would_be_written_otherwise_is_text(code: str) -> None:
    metadata = reader({"zip": (*"12345", code)})
    assert (metadata.new_fields, metadata.codes) == ({"zip": "keyword"}, {"zip": "number"})
    values, left = metadata.read_front({"zip": (code, "1")})
    assert (values, [*left.values()]) == ({"zip": (code, "1")}, [1])
    assert reader({"zip": (code,)}, zip="number").read_front({"zip": (code,)})[1] == {}
    later = MetadataReader({}, {"zip": "number"})
    later.expect_front_matter([{"zip": (code,)}])
    values, left = later.read_front({"zip": (code,)})
    assert values == {EXTRA: f"zip: {code}"}
    assert [*left] == [
        'values of "zip" in front matter that are no number as written, kept as text in "extra"'
    ]


def test_dates_of_jekyll_have_zones() -> None:
    metadata = reader({"date": ("2015-10-20 11:22:33 +0800",)})
    values, _ = metadata.read_front({"date": ("2015-10-20 11:22:33 +0800",)})
    assert values == {"date": "2015-10-20 11:22:33+08:00"}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("Reading time", "reading_time"),
        ("params.author", "params_author"),
        ("cssClasses", "cssclasses"),
        ("метка", "метка"),
        ("companies:", "companies"),
        ("type", "front_type"),
        ("ID", "front_id"),
        ("sentence_ends", "front_sentence_ends"),
        ("extra", "front_extra"),
        ("modified", "front_modified"),
        ("Year", "YEAR"),
        ("1st", ""),
        ("--", ""),
        ("📅", ""),
        ("x" * 41, ""),
    ],
)
def test_keys_become_names_that_queries_can_have(key: str, name: str) -> None:
    metadata = reader({key: ("a",)}, YEAR="keyword")
    assert [*metadata.new_fields] == ([] if name == "YEAR" else [name or EXTRA])
    values, _ = metadata.read_front({key: ("a",)})
    assert values == ({name: "a"} if name else {EXTRA: f"{key}: a"})


def test_a_declared_name_of_files_takes_the_value_of_front_matter() -> None:
    metadata = reader({"type": ("person",)}, type="keyword")
    assert metadata.new_fields == {}
    assert metadata.read_front({"type": ("person",)})[0] == {"type": "person"}
    assert metadata.seen == {"type"}


def test_ten_thousand_keys_are_bounded() -> None:
    metadata = reader(*({f"k{n}_{m}": ("1",) for m in range(100)} for n in range(300)))
    assert len(metadata.new_fields) == MAX_FRONT_FIELDS + 1
    assert len(metadata.fields) == MAX_FRONT_FIELDS + 1 + len(FILE_FIELDS)


def test_declared_fields_leave_less_room() -> None:
    declared = {f"d{number}": "keyword" for number in range(90)}
    metadata = reader({f"k{number}": ("1",) for number in range(60)}, **declared)
    assert len(metadata.fields) == 100
