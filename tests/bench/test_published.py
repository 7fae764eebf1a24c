"""Data sets made of small files in the form of the published ones."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from arag_search.errors import AragError, SourceError
from arag_search.evaluation.resolution import Passages, resolve_evidence
from arag_search.questions.files import load_questions
from arag_search.search.opening import open_index
from bench.__main__ import main
from bench.data import own_index, questions_in, set_folder
from bench.published import bright
from bench.published.made import PublishedRow
from index_jobs.sources.converters.tables import parquet_rows
from tests.support.converted import pdf_bytes

Rows = Sequence[Mapping[str, Any]]

EXAMPLES: Rows = [
    {"query": "Why do moths fly to light?", "reasoning": "r", "id": "0", "excluded_ids": ["N/A"],
     "gold_ids_long": ["moths/Phototaxis.txt", "moths/Moth.txt"], "gold_ids": ["x_0"],
     "gold_answer": "N/A"},
    {"query": "What\tis a\nflower?", "reasoning": "", "id": "1", "excluded_ids": ["moths/Moth.txt"],
     "gold_ids_long": ["plants/Flower.PDF"], "gold_ids": [], "gold_answer": ""},
]  # fmt: skip
DOCUMENTS: Rows = [
    {"id": "moths/Phototaxis.txt", "content": "Phototaxis is movement\n\nto light."},
    {"id": "moths/Moth.txt", "content": "Moths fly at night."},
    {"id": "plants/Flower.PDF", "content": "A flower is a part of a plant."},
    {"id": "plants/", "content": "Roses."},
]
ARTICLES: Rows = [
    {"id": "a1f", "url": "https://support.example/a", "title": "Publish a site",
     "contents": "Open the editor. Click Publish.", "html_content": "<p>Hidden markup</p>",
     "article_type": "article"},
    {"id": "b7d", "url": "https://support.example/b", "title": "Feature request: dark mode",
     "contents": "We are collecting votes.", "html_content": "<p></p>",
     "article_type": "feature_request"},
]  # fmt: skip
TICKETS: Rows = [
    {"question": "How do I publish?", "answer": "Click Publish.", "article_ids": ["a1f", "b7d"]},
    {"question": "Is there a dark mode?", "answer": "No.\n\nVote.", "article_ids": ["gone"]},
]


def write_parquet(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), path)


def write_lines(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def write_bright(folder: Path, examples: Rows = EXAMPLES, documents: Rows = DOCUMENTS) -> None:
    write_parquet(folder / "examples" / "biology-00000-of-00001.parquet", examples)
    halves = documents[:2], documents[2:]
    for number, rows in enumerate(halves):
        name = f"biology-0000{number}-of-00002.parquet"
        write_parquet(folder / "long_documents" / name, rows)


def prepare(published: str, folder: Path) -> int:
    return main(["prepare", published, str(folder), "--to", str(folder.parent / "data")])


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    (tmp_path / "downloaded").mkdir()
    return tmp_path / "downloaded"


def test_a_domain_of_bright_becomes_a_beir_folder_with_an_index(
    downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bright(downloaded)
    assert prepare("bright", downloaded) == 0, capsys.readouterr().err
    folder = set_folder(downloaded.parent / "data", "bright_biology")
    assert capsys.readouterr().out == (
        f"{folder}: 2 questions, 4 documents\n"
        "  Note: The judgements are test.tsv of 2 queries; there are no answers.\n"
    )
    assert questions_in(folder) == folder
    first, second = load_questions(folder)
    assert (first.id, first.text) == ("0", "Why do moths fly to light?")
    assert first.relevant_documents == (("moths/Phototaxis.txt", 1), ("moths/Moth.txt", 1))
    assert (first.excluded_documents, second.excluded_documents) == ((), ("moths/Moth.txt",))
    assert second.text == "What\tis a\nflower?"
    location = own_index(folder)
    assert location is not None
    with open_index(location) as index:
        texts = {chunk.doc_id: (chunk.title, chunk.content) for chunk in index.scan()}
        assert texts == {row["id"]: ("", row["content"]) for row in DOCUMENTS}
        (hit,) = index.logical_search("file:Flower.PDF AND type:pdf").hits
        assert hit.doc_id == "plants/Flower.PDF"
        assert len(index.logical_search("file:plants").hits) == 1


def test_the_same_command_makes_a_data_set_anew(downloaded: Path) -> None:
    for documents in (DOCUMENTS, [*DOCUMENTS, {"id": "more", "content": "More."}]):
        write_bright(downloaded, documents=documents)
        assert prepare("bright", downloaded) == 0
        with open_index(downloaded.parent / "data" / "bright_biology" / "index") as index:
            assert index.manifest.documents == len(documents)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"excluded_ids": ["moths/Moth.txt"]}, 'Document "moths/Moth.txt" is relevant and excl'),
        ({"gold_ids_long": ["a\tb"]}, "\"gold_ids_long\" is 'a\\tb'."),
        ({"gold_ids_long": ["a\u2028b"]}, "\"gold_ids_long\" is 'a\\u2028b'."),
        ({"id": " 0"}, "\"id\" is ' 0'."),
        ({"query": "  "}, '"query" is no text.'),
        ({"excluded_ids": None}, '"excluded_ids" is no list.'),
    ],
)
def test_a_row_of_bright_that_is_not_as_published_is_named(
    change: dict[str, Any], message: str, downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bright(downloaded, [{**EXAMPLES[0], **change}])
    assert prepare("bright", downloaded) == 1
    errors = capsys.readouterr().err
    assert f"The row is not as published: {message}" in errors
    assert "biology-00000-of-00001.parquet, row 1" in errors
    assert "Do: Download the files again: hf download xlangai/BRIGHT" in errors


@given(st.text(min_size=1, max_size=30), st.lists(st.text(min_size=1, max_size=20), max_size=4))
def test_whatever_the_ids_are_judgements_are_read_as_they_were_or_refused(
    id: str, documents: list[str]
) -> None:
    rows = [{"id": id, "query": "?", "excluded_ids": ["N/A"], "gold_ids_long": documents}]
    judgements = ""
    try:
        _, judgements = bright.query_files([PublishedRow(row, "row 1", "") for row in rows])
    except AragError:
        assert any(text != text.strip() or len(text.splitlines()) > 1 or "\t" in text
                   for text in (id, *documents))  # fmt: skip
        return
    _, *judged = judgements.split("\n")[:-1]
    cells = [line.split("\t") for line in judged]
    assert cells == [[id, document, "1"] for document in dict.fromkeys(documents)]


def test_parts_of_wixqa_become_data_sets_of_all_articles(
    downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(downloaded / "wix_kb_corpus" / "wix_kb_corpus.jsonl", ARTICLES)
    for part in ("expertwritten", "simulated"):
        write_lines(downloaded / f"wixqa_{part}" / "test.jsonl", TICKETS)
    assert prepare("wixqa", downloaded) == 0, capsys.readouterr().err
    data = downloaded.parent / "data"
    assert sorted(folder.name for folder in data.iterdir()) == [
        "wixqa_expertwritten", "wixqa_simulated",
    ]  # fmt: skip
    assert "1 of 3 relevant documents are not in the index." in capsys.readouterr().out
    folder = set_folder(data, "wixqa_simulated")
    first, _ = load_questions(questions_in(folder))
    assert first.relevant_documents == (("a1f", 1), ("b7d", 1))
    with open_index(folder / "index") as index:
        (hit,) = index.logical_search("publish AND article_type:article").hits
        assert (hit.doc_id, hit.title) == ("a1f", "Publish a site")
        assert not index.logical_search("markup").hits


def evidence(name: str, page: int, text: str) -> dict[str, Any]:
    return {"evidence_text": text[:20], "doc_name": name, "evidence_page_num": page,
            "evidence_text_full_page": text}  # fmt: skip


def write_financebench(folder: Path) -> None:
    page = "Purchases of property, plant and equipment were 1,577 million dollars in 2018."
    write_lines(
        folder / "data" / "financebench_open_source.jsonl",
        [
            {"financebench_id": "financebench_id_1", "question": "What was spent?",
             "answer": "$1577.00", "question_type": "metrics-generated", "doc_name": "3M_2018_10K",
             "evidence": [evidence("3M_2018_10K", 1, page)]},
            {"financebench_id": "financebench_id_2", "question": "And by AMD?", "answer": "No.",
             "question_type": "domain-relevant", "doc_name": "AMD_2022_10K",
             "evidence": [evidence("AMD_2022_10K", 0, "Nothing was spent on property.")]},
        ],
    )  # fmt: skip
    pdfs = folder / "pdfs"
    pdfs.mkdir()
    first = [(12, "Annual report of 3M.")], [(12, page[:32]), (12, page[33:])]
    (pdfs / "3M_2018_10K.pdf").write_bytes(pdf_bytes([list(lines) for lines in first]))
    (pdfs / "AMD_2022_10K.pdf").write_bytes(pdf_bytes([[(12, "Nothing was spent on property.")]]))
    (pdfs / "OTHER_2020_10K.pdf").write_bytes(pdf_bytes([[(12, "Nobody asks about this one.")]]))


def test_financebench_becomes_the_reports_that_are_asked_about_and_its_questions(
    downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_financebench(downloaded)
    assert prepare("financebench", downloaded) == 0, capsys.readouterr().err
    folder = set_folder(downloaded.parent / "data", "financebench")
    assert capsys.readouterr().out == f"{folder}: 2 questions, 2 documents\n"
    questions = load_questions(questions_in(folder))
    with open_index(folder / "index") as index:
        passages = Passages(index.scan())
        for question in questions:
            ((piece,),) = resolve_evidence(question, passages)
            assert passages.document_ids(piece.chunk_ids) == [question.relevant_documents[0][0]]
        (hit,) = index.logical_search("file:3M_2018_10K.pdf AND type:pdf").hits
        text = index.read([hit.id])[0].content
        assert "[page 2]" in text.splitlines()


SECRET = "A canary for this test, and for no data that is published."
PAGES: Rows = [
    {"docid": "11", "url": "https://site.example/ada",
     "text": "---\ntitle: Ada Lane\ndate: 2020-01-02\n---\nAda Lane was mayor of Ely in 1931."},
    {"docid": "12", "url": "https://site.example/ely", "text": "Ely is a town in the fens."},
    {"docid": "13", "url": "https://site.example/fog", "text": "Fog is a cloud near the ground."},
]  # fmt: skip


def encrypted(value: Any) -> Any:
    """Encrypt as the published data are: base64 of the bytes, each XORed with the next of the
    repeated SHA-256 of the canary; ids of questions stay plain."""
    if isinstance(value, dict):
        fields: Mapping[str, Any] = value
        return {key: item if key == "query_id" else encrypted(item) for key, item in fields.items()}
    if isinstance(value, list):
        parts: list[Any] = value
        return [encrypted(part) for part in parts]
    key = hashlib.sha256(SECRET.encode()).digest()
    raw = str(value).encode()
    return base64.b64encode(bytes(byte ^ key[at % 32] for at, byte in enumerate(raw))).decode()


def write_browsecomp_plus(folder: Path) -> None:
    row = {
        "query_id": "769", "query": "Who led the town in the fens – 1931?", "answer": "Ada Lane",
        "gold_docs": [PAGES[0]], "evidence_docs": [PAGES[0], PAGES[1]], "negative_docs": [PAGES[2]],
    }  # fmt: skip
    longer = {**row, "query_id": "770", "query": "How " + "very " * 40 + "long?"}
    rows = [encrypted(row), encrypted(longer)]
    write_parquet(folder / "queries" / "data" / "test-0.parquet", rows)
    write_parquet(folder / "corpus" / "data" / "train-0.parquet", PAGES)
    (folder / "canary.txt").write_text(f"{SECRET}\n")


def test_browsecomp_plus_is_decrypted_with_the_canary_of_its_user(
    downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_browsecomp_plus(downloaded)
    assert b"Ada Lane" not in (downloaded / "queries" / "data" / "test-0.parquet").read_bytes()
    assert prepare("browsecomp_plus", downloaded) == 0, capsys.readouterr().err
    folder = set_folder(downloaded.parent / "data", "browsecomp_plus")
    assert capsys.readouterr().out == f"{folder}: 2 questions, 3 documents\n"
    first, second = load_questions(questions_in(folder))
    assert (first.id, first.text) == ("769", "Who led the town in the fens – 1931?")
    assert first.answers == ("Ada Lane",)
    assert first.relevant_documents == (("11", 2), ("12", 1))
    assert second.text.endswith("very long?")
    with open_index(folder / "index") as index:
        (hit,) = index.logical_search('title:"ada lane"').hits
        assert (hit.doc_id, hit.metadata["url"]) == ("11", "https://site.example/ada")
        assert index.read([hit.id])[0].content.startswith("---\ntitle: Ada Lane\n")


@pytest.mark.parametrize("canary", ["another canary", ""])
def test_another_canary_is_refused_before_anything_is_written(
    canary: str, downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_browsecomp_plus(downloaded)
    (downloaded / "canary.txt").write_text(canary)
    assert prepare("browsecomp_plus", downloaded) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("The row is not as published: it cannot be decrypted with this canary")
    assert "test-0.parquet, row 1\n" in errors
    assert "Do: Check canary.txt, or download the files again: hf download Tevatron/" in errors
    assert not (downloaded.parent / "data").exists()


def test_rows_of_browsecomp_plus_that_are_not_as_published_are_named(
    downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_browsecomp_plus(downloaded)
    plain = {"query_id": "1", "query": "Not encrypted?", "answer": "No", "gold_docs": []}
    write_parquet(downloaded / "queries" / "data" / "test-0.parquet", [plain])
    assert prepare("browsecomp_plus", downloaded) == 1
    assert "cannot be decrypted with this canary (Error)." in capsys.readouterr().err
    write_parquet(
        downloaded / "queries" / "data" / "test-0.parquet",
        [encrypted({"query_id": "1", "query": "Who?", "answer": "Ada", "gold_docs": "11"})],
    )
    assert prepare("browsecomp_plus", downloaded) == 1
    assert '"gold_docs" is no list.' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("published", "missing"),
    [
        ("browsecomp_plus", "canary.txt"),
        ("bright", "examples/DOMAIN-*.parquet"),
        ("wixqa", "wix_kb_corpus/wix_kb_corpus.jsonl"),
        ("financebench", "data/financebench_open_source.jsonl"),
    ],
)
def test_a_folder_without_the_published_files_says_how_to_get_them(
    published: str, missing: str, downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare(published, downloaded) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"The folder does not have {missing}.\nWhere: {downloaded}\n")
    assert "\nDo: Download them: " in errors
    assert not (downloaded.parent / "data").exists()


def test_a_missing_report_or_half_of_a_domain_is_named(
    downloaded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_financebench(downloaded)
    (downloaded / "pdfs" / "AMD_2022_10K.pdf").unlink()
    assert prepare("financebench", downloaded) == 1
    assert (
        "The folder does not have 1 of its reports, such as pdfs/AMD_2022_10K.pdf."
        in capsys.readouterr().err
    )
    write_parquet(downloaded / "examples" / "pony-00000-of-00001.parquet", EXAMPLES)
    assert prepare("bright", downloaded) == 1
    assert "does not have long_documents/pony-*.parquet." in capsys.readouterr().err


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, EXAMPLES)
    assert [row["id"] for row in parquet_rows(path, "a")] == ["0", "1"]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="cannot be read as Parquet"):
        list(parquet_rows(path, "a"))
