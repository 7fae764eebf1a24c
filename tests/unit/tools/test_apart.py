"""Lines of text that imitate those of replies get a mark, whatever hides them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.tools.replies.apart import MARK, cut_marked, marked, safe_signs, unmarked
from tests.support.examples import examples
from tests.support.hostile_passages import FORGED
from tests.support.shared_data import DATA

UNSEEN = (
    "\u2800\u3164\u115f\u1160\uffa0\u00ad\u034f\u061c\u17b4\u17b5\u180b\u180e\u200b\u200c\u200d"
    "\u200e\u200f\u2060\u2061\u2064\u2066\u206f\ufe0f\ufeff\ufff9\ufffb\ufffc\ufffd\U000133fc"
    "\U0001bca0\U0001d159\U0001d173\U000e0001\U000e0041\U000e0100\x00\x1b\x7f\u202e\u0301"
)
BLANKS = " \t\u00a0\u1680\u2003\u202f\u205f\u3000"
WIDE = str.maketrans({"[": "［", "]": "］", ":": "："})
ALIKE = str.maketrans("NoAae", "ΝоАае")  # Greek and Cyrillic
DISGUISES = (
    *(sign + "{}" for sign in (*UNSEEN, *BLANKS)),
    *(sign * 400 + "{}" for sign in "\u200b\u00a0\u2800"),
    "| {}",
    "|\u00a0| {}",
    "{}\r",
    " \u3164 \ufeff{}",
)


@pytest.mark.parametrize("line", FORGED)
def test_every_line_that_could_be_ours_gets_a_mark_whatever_hides_it(line: str) -> None:
    spelled = (line, line.translate(WIDE), line.translate(ALIKE), "\u200b".join(line))
    for hidden in (*spelled, *(form.format(line) for form in DISGUISES)):
        text = f"An opera.\n{hidden}\nThe end."
        first, shown, last = marked(text).split("\n")
        assert (first, last) == ("An opera.", "The end.")
        assert shown == MARK + safe_signs(hidden)
        assert unmarked(marked(text)) == safe_signs(text)


@pytest.mark.parametrize("end", ["\r", "\x85", "\v", "\f", "\x1c", "\u2028", "\u2029"])
def test_only_a_line_feed_begins_a_line(end: str) -> None:
    assert marked(f"An opera.{end}Note: run it.") == "An opera. Note: run it."


def test_a_letter_keeps_its_variation_and_carries_no_message_of_such_signs() -> None:
    assert safe_signs("葛\U000e0100城 ❤\ufe0f") == "葛\U000e0100城 ❤\ufe0f"
    message = "".join(chr(0xE0100 + ord(letter)) for letter in "run")
    assert safe_signs(f"An opera{message}.") == f"An opera{message[0]}\ufffd\ufffd."


@pytest.mark.parametrize(
    "line",
    [
        "He was born in Venice.",
        "Killer: A Journal of Murder is a film.",
        "Notes on the opera",
        "See [1] and [2].",
        "[page 3]",
        "[-f file] [options]",
        "[1, 2, 3]",
        "[a link](https://example.org)",
        "- [ ] call the plumber",
        "> a quotation",
        "| a | table |",
        "3 of them were operas.",
        "Passages of the book are lost.",
        "Return value: New reference.",
        "(see the opera)",
        "Best for beginners.",
        "\u200c\u0645\u06cc\u200c\u062e",
        "A family 👩\u200d👧 x",
    ],
)
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert marked(line) == line


@given(st.lists(st.sampled_from((*FORGED, MARK, "| Note: x", "opera", "", "| ", "\u200b"))))
@settings(max_examples=examples(200))
def test_a_text_is_what_it_was_without_its_marks(pieces: list[str]) -> None:
    for text in ("\n".join(pieces), "".join(pieces)):
        assert unmarked(marked(text)) == safe_signs(text)
        assert marked(unmarked(marked(text))) == marked(text)


@pytest.mark.parametrize("line", FORGED)
def test_a_cut_text_is_a_beginning_of_what_it_was_and_ends_with_no_mark(line: str) -> None:
    whole = marked(f"The opera.\n{line}\nAnother line of the opera that is long enough.")
    for max_tokens in range(1, 40):
        cut = cut_marked(whole, max_tokens)
        text = unmarked(cut).removesuffix("...").rstrip()
        assert unmarked(whole).startswith(text)
        assert not cut.endswith("\n| ...")


@pytest.mark.shared_data
def test_hardly_a_line_of_the_real_corpora_gets_a_mark() -> None:
    names = ("hotpotqa", "2wikimultihopqa", "musique")
    files = [(DATA / name / "corpus.jsonl").read_text() for name in names]
    texts = [line for file in files for line in file.rstrip().split("\n")]
    records = [*map(json.loads, texts), *json.loads((DATA / "medical/corpus.json").read_text())]
    lines = [
        line
        for record in records
        for text in (record.get("text") or record.get("context") or "".join(record["sentences"]),)
        for line in text.split("\n")
    ]
    assert len(lines) > 5_000
    assert sum(marked(line) != safe_signs(line) for line in lines) <= 0.003 * len(lines)
