"""Counterfactual corpora: names and years by hand, and a small run. No test judges a figure."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from bench.counterfactual.counterfactual import main
from bench.counterfactual.years import Years

PASSAGES = (
    {
        "id": "juan-carlos-martín-corral",
        "title": "Juan Carlos Martín Corral",
        "text": "Juan Carlos Martín Corral (born 20 January 1988) is a Spanish footballer."
        " J. C. Martín plays for Zarquon FC. Corral's son, Iker Corral, won the"
        " Pulitzer Prize. MARTÍN is 30.",
        "year": 1988,
    },
    {
        "title": "The Heart of Doreon (1915 film)",
        "text": "The Heart of Doreon is a silent film by Neil Young, made in the 1910s in"
        " Germany with 1500 people. Its heart is a river. Young died on 3 May 851."
        " Zarquon said it cost $1900.",
    },
    {
        "title": "Evolution (film)",
        "text": 'The evolution of "Evolution" took (c. 300) an evolution.',
    },
    {"title": "C++ [draft] (a|b)*", "text": "See C++ [draft] (a|b)* and the evolution of Perlux."},
)
QUESTIONS = (
    {
        "id": "5a77ec1155b2",
        "question": "When did the director of the heart of doreon die?",
        "answer": "3 May 851",
        "evidence": [
            ["The Heart of Doreon", "director", "Neil Young"],
            ["Neil Young", "date of death", "851"],
        ],
    },
    {
        "id": "q2",
        "question": "Who is older, Iker Corral or Juan Carlos Martín Corral?",
        "answer": "Juan Carlos Martín Corral",
        "answer_aliases": ["J. C. Martín"],
        "evidence": [["Iker Corral", "father", "Juan Carlos Martín Corral"]],
    },
    {"id": "q3", "question": "Is Evolution from Germany?", "answer": "yes"},
)


def _written(folder: Path, name: str, records: Any) -> Path:
    path = folder / name
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def _run(
    folder: Path, passages: Any = PASSAGES, questions: Any = QUESTIONS, seed: int = 1
) -> tuple[Path, list[Any], list[Any]]:
    """Rewrite a data set; return the folder with the new one, its passages and its questions."""
    paths = [_written(folder, "c.jsonl", passages), _written(folder, "q.jsonl", questions)]
    out = folder / f"out{seed}"
    options = ["--out", str(out), "--seed", str(seed), "--work", str(folder / "work")]
    assert main([*map(str, paths), *options]) == 0
    read = [
        [orjson.loads(line) for line in (out / name).read_bytes().splitlines()]
        for name in ("corpus.jsonl", "questions.jsonl")
    ]
    order = list(range(len(read[0])))
    Random(f"{seed} passages").shuffle(order)
    return out, [read[0][order.index(at)] for at in range(len(order))], read[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any], list[Any]]:
    return _run(tmp_path_factory.mktemp("counterfactual"))


def test_every_part_of_a_name_is_the_same_invented_part_throughout(
    made: tuple[Path, list[Any], list[Any]],
) -> None:
    out, passages, questions = made
    words = dict(line.split("\t") for line in (out / "names.tsv").read_text("utf-8").splitlines())
    juan, carlos, corral = (words[word].title() for word in ("juan", "carlos", "corral"))
    title, text = passages[0]["title"], passages[0]["text"]
    martin = title.split()[2]
    assert title == f"{juan} {carlos} {martin} {corral}"
    assert text.startswith(f"{title} (born 20 January 2388) is a Spanish footballer. ")
    assert f"{juan[0]}. {carlos[0]}. {martin} plays for {words['zarquon'].title()} " in text
    assert f"{corral}'s son, {words['iker'].title()} {corral}, won the Pulitzer Prize" in text
    assert text.endswith(f"{martin.upper()} is 30.")
    assert passages[0]["id"] == title.lower().replace(" ", "-")
    assert passages[0]["year"] == 2388
    assert questions[1]["answer"] == questions[1]["evidence"][0][2] == title
    assert questions[1]["answer_aliases"] == [f"{juan[0]}. {carlos[0]}. {martin}"]
    assert questions[1]["question"].endswith(f"or {title}?")


def test_a_name_of_ordinary_words_is_replaced_where_it_is_meant(
    made: tuple[Path, list[Any], list[Any]],
) -> None:
    _, passages, questions = made
    title = passages[1]["title"].removesuffix(" (2315 film)")
    text = passages[1]["text"]
    neil, young = questions[0]["evidence"][1][0].split()
    assert title.split()[::2] == ["The", "of"]
    assert "Heart" not in title
    assert f"{title} is a silent film by {neil} {young}, made in the 2310s in Germany" in text
    assert f"with 1500 people. Its heart is a river. {young} died on 3 May 1251. " in text
    assert text.endswith(" said it cost $1900.")
    assert questions[0]["id"] == "5a77ec1155b2"
    assert title.lower() in questions[0]["question"]
    assert questions[0]["answer"] == "3 May 1251"
    assert questions[0]["evidence"][1][1:] == ["date of death", "1251"]
    new = passages[2]["title"].removesuffix(" (film)")
    assert passages[2]["text"] == f'The evolution of "{new}" took (c. 700) an evolution.'
    assert questions[2]["question"] == f"Is {new} from Germany?"
    assert "and the evolution of P" not in passages[3]["text"]


def test_no_invented_word_is_one_of_the_corpus_and_no_two_are_the_same(
    made: tuple[Path, list[Any], list[Any]],
) -> None:
    out, _, _ = made
    lines = (out / "names.tsv").read_text("utf-8").splitlines()
    new = [line.split("\t")[1] for line in lines]
    old = orjson.dumps([PASSAGES, QUESTIONS]).decode().lower()
    assert len(set(new)) == len(new)
    assert not [word for word in new if f" {word} " in old]


def test_the_report_counts_what_is_left_and_what_is_lost(
    made: tuple[Path, list[Any], list[Any]],
) -> None:
    figure = next(iter(orjson.loads((made[0] / "report.json").read_bytes())["figures"].values()))
    rows = {row["what"]: row["value"] for row in figure["rows"]}
    assert rows["names of chains that are left"] == 0
    assert rows["hops lost, other questions"] == 0
    assert figure["details"]["names that are left"] == []


def test_the_same_seed_gives_the_same_bytes_and_another_one_other_names(tmp_path: Path) -> None:
    first, _, _ = _run(tmp_path)
    before = [(first / name).read_bytes() for name in ("corpus.jsonl", "questions.jsonl")]
    again, passages, _ = _run(tmp_path)
    assert [(again / name).read_bytes() for name in ("corpus.jsonl", "questions.jsonl")] == before
    _, other, _ = _run(tmp_path, seed=2)
    assert passages[0]["title"] != other[0]["title"]


def test_questions_without_evidence_and_without_names_are_rewritten_too(tmp_path: Path) -> None:
    questions = [{"question": "what is it?", "answer": "an apple"}]
    _, passages, asked = _run(tmp_path, ({"text": "Apples grow. So it is."},), questions)
    assert passages == [{"text": "Apples grow. So it is."}]
    assert asked == questions


TITLED = (
    {
        "title": "Zarquon Blix",
        "text": "The successor of Zarquon is Hon. Winnie Mulvex. A col is low.",
    },
    {"title": "Vex markka", "text": "The markka, a coin of Vexland, was the Vex markka. " * 12},
)
PAID = (
    {
        "id": "2hop Zarquon",
        "source": "Zarquon set",
        "question": "What is paid in Vexland?",
        "answer": "Vex Markka",
        "evidence": [["Vex markka", "coin", "Vex Markka"]],
    },
)


def test_abbreviations_before_names_and_fields_that_are_no_text_stay(tmp_path: Path) -> None:
    out, passages, questions = _run(tmp_path, TITLED, PAID)
    assert " is Hon. " in passages[0]["text"]
    assert "Winnie" not in passages[0]["text"]
    assert (questions[0]["id"], questions[0]["source"]) == ("2hop Zarquon", "Zarquon set")
    figure = next(iter(orjson.loads((out / "report.json").read_bytes())["figures"].values()))
    halves = figure["details"]["replaced words of answers that are left in passages of their hops"]
    assert halves == [f"markka in {passages[1]['title']}"]


def test_passages_are_in_an_order_of_the_seed(tmp_path: Path) -> None:
    passages = [{"title": f"{number}", "text": f"It is {number}."} for number in range(20)]
    for seed in (1, 2):
        _, back, _ = _run(tmp_path, passages, QUESTIONS, seed)
        assert [of["text"] for of in back] == [of["text"] for of in passages]
    orders = [(tmp_path / f"out{seed}" / "corpus.jsonl").read_bytes() for seed in (1, 2)]
    assert len({*orders, b"".join(orjson.dumps(of) + b"\n" for of in passages)}) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n", "The corpus has no words."),
        (b'{"title": "\xff"}\n', "The line is not JSON"),
        (b"[1]\n", "The line is no object."),
        (b"\nnot json\n", "c.jsonl, line 2"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_bytes(content)
    questions = _written(tmp_path, "q.jsonl", QUESTIONS)
    assert main([str(corpus), str(questions), "--out", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "corpus.jsonl").exists()


def test_a_data_set_is_not_written_over_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = _written(tmp_path, "corpus.jsonl", PASSAGES)
    questions = _written(tmp_path, "questions.jsonl", QUESTIONS)
    assert main([str(corpus), str(questions), "--out", str(tmp_path)]) == 1
    assert "would replace the old one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("8 March 1874 – 24 October 1931, aged 57", "8 March 2274 – 24 October 2331, aged 57"),
        ("January 2, 1969; 1914–18; 1998-99", "January 2, 2369; 2314–18; 2398-99"),
        ("between 995 and 997 or (857–1003)", "between 1395 and 1397 or (1257–1403)"),
        ("died 11 November 875, c. 796", "died 11 November 1275, c. 1196"),
        ("On 12 March 928, he; in 928 or 929", "On 12 March 1328, he; in 1328 or 1329"),
        ("born1950, 19501960, the mid-1980s", "born2350, 23502360, the mid-2380s"),
        ("18th and 19th centuries", "22nd and 23rd centuries"),
        ("Nineteenth-century; 3rd century BC", "Twenty-third-century; 3rd century BC"),
        ("1200 BC, AD 43, 500 AD", "1200 BC, AD 443, 900 AD"),
        ("1,500 or 1500 m, $1500, in 100 countries", "1,500 or 1500 m, $1500, in 100 countries"),
        ("Fahrenheit 451, B1500, 3.1415, 2045", "Fahrenheit 451, B1500, 3.1415, 2045"),
    ],
)
def test_years_move_and_ages_and_amounts_stay(text: str, later: str) -> None:
    assert Years().later(text) == later
