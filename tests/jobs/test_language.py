"""The language of a corpus, and indexes with forms and without."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from arag_search.errors import IndexVersionError
from arag_search.manifest import Manifest
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildReport

ENGLISH = "Antonio Vivaldi wrote about five hundred concertos and several dozen operas in Venice."
GERMAN = "Die Häuser der Stadt sind alt, und viele ihrer Gassen führen zum Wasser hinunter."
TOO_LITTLE = "language: too little running text to tell; en is used (`language` changes that)"


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def built(texts: Sequence[str], options: BuildOptions | None = None, to: str = "a") -> BuildReport:
    lines = (json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts))
    Path(f"{to}.jsonl").write_text("\n".join(lines))
    return build_index([f"{to}.jsonl"], to, options)


def hits(to: str, query: str) -> list[str]:
    with open_index(to) as index:
        return [hit.doc_id for hit in index.logical_search(query).hits]


@pytest.mark.parametrize(
    ("texts", "language", "note"),
    [
        ([ENGLISH], "en", "language: en 100% of a sample; en is used"),
        ([GERMAN] * 4 + [ENGLISH], "de", "language: de 81%, en 19% of a sample; de is used"),
        ([GERMAN, ENGLISH], "none", "language: de 52%, en 48% of a sample; words match without"),
        (
            ["東京は日本の首都であり、有数の大都市である。" * 3],
            "none",
            "language: ja 100% of",
        ),
        (["यह एक बहुत पुराना घर है। इस शहर में बहुत से पुराने घर हैं।"], "hi", "language: hi 100%"),
        (["Das Wasser ist sehr kalt.", "Der Hund schläft im Garten."], "de", "language: de 100%"),
        (
            ["Husene i byen er gamle, og gatene fører ned til vannet."] * 3,
            "nb",
            "language: nb 100%",
        ),
        (
            ["Kuće u gradu su stare, a mnoge ulice vode prema vodi."] * 3,
            "hbs",
            "language: hbs 100%",
        ),
        (["arena camera panorama villa opera casino studio zebra"] * 50, "en", TOO_LITTLE),
        (["Doris Rossi\nMilano\n12", "Prof. Alexis Bianchi, Via Roma 5, Torino"], "en", TOO_LITTLE),
        (["Le Comte de Monte-Cristo et autres histoires"], "en", TOO_LITTLE),
        (["src/houses/de/Haus.py", "7", "1 2 3"], "en", TOO_LITTLE),
    ],
)
def test_the_language_of_most_of_a_sample_is_used(
    texts: list[str], language: str, note: str
) -> None:
    report = built(texts)
    assert report.notes[-1].startswith(note)
    with open_index("a") as index:
        assert index.manifest.language == language
        assert index.manifest.forms[0] == "words"


def test_words_in_rows_of_a_table_match_their_forms() -> None:
    rows = (f"AB-{n},zebra panorama camera villa mosquito opera {n} mm house" for n in range(50))
    Path("parts.csv").write_text("sku,description\n" + "\n".join(rows))
    build_index(["parts.csv"], "index")
    assert len(hits("index", "houses")) == 5


def test_logs_and_data_do_not_count() -> None:
    Path("notes").mkdir()
    Path("notes/a.json").write_text(json.dumps([ENGLISH] * 4_000))
    Path("notes/b.log").write_text(ENGLISH)
    Path("notes/c").write_text(GERMAN)
    report = build_index(["notes"], "index")
    assert report.notes[-1].startswith("language: de 100% of a sample; de is used")


def test_indexes_with_and_without_forms_are_open_side_by_side() -> None:
    built([ENGLISH, GERMAN], BuildOptions(language="en"), "forms")
    built([ENGLISH, GERMAN], BuildOptions(without=("forms",)), "written")
    built([ENGLISH, GERMAN], BuildOptions(language="de"), "german")
    with open_index("forms") as forms, open_index("written") as written, open_index("german") as de:
        for query, counts in (
            ("concerto", (1, 0, 1)),
            ('"=concerto"', (0, 0, 0)),
            ("concertos", (1, 1, 1)),
            ("haus", (0, 0, 1)),
            ("HÄUSER", (1, 1, 1)),
            ("concertp~1", (1, 0, 1)),
            ("concertops~1", (1, 1, 1)),
            ("gasse", (0, 0, 1)),
        ):
            totals = tuple(index.logical_search(query).total for index in (forms, written, de))
            assert totals == counts, query
        assert not written.manifest.language
        assert written.manifest.forms == ()


def test_an_index_made_by_other_steps_is_refused() -> None:
    built([ENGLISH], BuildOptions(language="en"))
    with open_index("a") as index:
        manifest = index.manifest
    text = manifest.to_json().replace("simplemma ", "simplemma 0.")
    with pytest.raises(
        IndexVersionError, match=r"^The words of the index have forms by other"
    ) as e:
        Manifest.from_json(text, "a")
    assert "lemmas of en (simplemma 2" in str(e.value.allowed)


def test_updates_keep_the_language() -> None:
    from index_jobs.updates.addition import add_documents
    from index_jobs.updates.options import AddOptions

    built([ENGLISH], BuildOptions(language="en"))
    Path("more.jsonl").write_text(json.dumps({"id": "x", "text": f"{GERMAN} The films."}))
    add_documents(["more.jsonl"], "a", AddOptions())
    assert hits("a", "film") == ["x"]
