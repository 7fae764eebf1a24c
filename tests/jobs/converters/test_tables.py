"""Tables: every row is a document."""

import tracemalloc
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from arag_search.errors import SourceError
from index_jobs.sources import encodings
from index_jobs.sources.converters.registry import FILE_TYPES, ConvertedDocument
from index_jobs.sources.lines.files import Fields
from tests.support.converted import documents_of, entries_of, refusal_of, written

ROWS = 8_000
OPERAS = 'name,year,note\nGriselda,1735,"in Venice, by ""il prete rosso"""\nOrlando,1727,\n'


def rows_of(path: Path, fields: Fields | None = None) -> list[dict[str, Any]]:
    return [dict(document.metadata) for document in documents_of(path, fields)]


def table(path: Path, columns: dict[str, Any]) -> Path:
    parquet.write_table(pyarrow.table(columns), path)
    return path


# CSV


def test_the_columns_of_a_row_are_its_text_and_its_metadata(tmp_path: Path) -> None:
    first, second = documents_of(written(tmp_path / "a.csv", OPERAS))
    assert first == ConvertedDocument(
        "1",
        "",
        'name: Griselda\nyear: 1735\nnote: in Venice, by "il prete rosso"',
        {"name": "Griselda", "year": "1735", "note": 'in Venice, by "il prete rosso"'},
    )
    assert second.text == "name: Orlando\nyear: 1727"
    assert second.metadata == {"name": "Orlando", "year": "1727"}


def test_columns_are_named_for_id_title_and_text(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", OPERAS)
    first, _ = documents_of(path, Fields(id_field="year", title_field="name"))
    assert (first.id, first.title) == ("1735", "Griselda")
    assert first.text == 'note: in Venice, by "il prete rosso"'
    first, second = documents_of(path, Fields(text_field="note", title_field="name"))
    assert (first.id, first.text) == ("", 'in Venice, by "il prete rosso"')
    assert (second.title, second.text) == ("Orlando", "")
    error = refusal_of(path, Fields(text_field="body"))
    assert '"body"' in error.what
    assert "name, year, note" in error.allowed
    assert "`text_field`" in error.do


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_delimiter_and_line_ends_are_detected(
    tmp_path: Path, delimiter: str, line_end: str
) -> None:
    lines = ["name,note", 'Ada,"a, b; c|d\te"', 'Bo,"two', 'lines"', "", "Cy,x"]
    text = line_end.join(lines).replace(",", "\0").replace("a\0 b", "a, b").replace("\0", delimiter)
    note = f"two{line_end}lines"
    assert rows_of(written(tmp_path / "a.csv", text.encode())) == [
        {"name": "Ada", "note": "a, b; c|d\te"},
        {"name": "Bo", "note": note},
        {"name": "Cy", "note": "x"},
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "cp1251"])
def test_the_encoding_of_a_table_is_detected(tmp_path: Path, encoding: str) -> None:
    russian = "Антонио Вивальди родился в Венеции и писал оперы"
    value = russian if encoding == "cp1251" else "Händel führt “Rinaldo” in London auf"
    text = "name;text\n" + f'Name;"{value},\nund mehr"\n' * 5
    read = rows_of(written(tmp_path / "a.csv", text.encode(encoding)))
    assert read == [{"name": "Name", "text": f"{value},\nund mehr"}] * 5


def test_the_encoding_is_detected_far_behind_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "_PIECE_BYTES", 1 << 12)
    data = b"name,text\n" + b"Ada,plain\n" * 20_000 + "Bo,schön und größer\n".encode("cp1252")
    *_, last = entries_of(written(tmp_path / "a.csv", data))
    assert isinstance(last, ConvertedDocument)
    assert last.metadata["text"] == "schön und größer"


def test_a_bad_row_is_an_error_and_the_rows_after_it_are_read(tmp_path: Path) -> None:
    good = "Händel,schön wärmer größer süß\n"
    data = f"name,note\n{good}Bo,x,y\nCy\n".encode() + b"Di,\xff\n" + good.encode()
    entries = entries_of(written(tmp_path / "a.csv", data))
    errors = [entry for entry in entries if isinstance(entry, SourceError)]
    assert [error.where for error in errors] == [f"a.csv, line {number}" for number in (3, 4, 5)]
    assert "3 columns" in errors[0].what
    assert "1 column." in errors[1].what
    assert "UTF-8" in errors[2].what
    suffixes = [entry.suffix for entry in entries if isinstance(entry, ConvertedDocument)]
    assert suffixes == ["1", "5"]


def test_a_row_without_an_id_and_a_row_without_text_are_errors(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,text\n,some\n7,\n8,more\n,\n")
    no_id, no_text, document = entries_of(path, Fields(id_field="id", text_field="text"))
    assert isinstance(no_id, SourceError)
    assert '"id" is empty' in no_id.what
    assert isinstance(no_text, SourceError)
    assert "neither" in no_text.what
    assert isinstance(document, ConvertedDocument)
    assert document.id == "8"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ('a,b\n1,"2\n3,4\n', "quote"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in refusal_of(written(tmp_path / "a.csv", text)).what


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("7\tThe pump runs\n8\tIt is old\n", "id,text"),
        (f"D1\t{'long text ' * 9}\nD2\tshort one\n", "id,text"),
        ("7\tpump\n7\tpipe\n", "column 1,column 2"),
        ("1\t2\n3\t4\n", "column 1,column 2"),
        ("2024-01-05\tPump\t45\n2024-01-06\tPipe\t3\n", "column 1,column 2,column 3"),
        ("Ada\t1815\tLondon\nBo\t1990\tParis\n", "column 1,column 2,column 3"),
        ("Bolt\t12.50 \u20ac\nNut\t2,10 \u20ac\n", "column 1,column 2"),
        ("x\t08:15\ty\nz\t09:30\tw\n", "column 1,column 2,column 3"),
        # Those with a header
        ("country\t2019\t2020\nDE\t83.1\t83.2\n", "country,2019,2020"),
        ("word\t1\t2\t3\na\t9\t8\t7\n", "word,1,2,3"),
        ("\t1900\t1950\nx\t1\t2\n", "column 1,1900,1950"),
        ("name\tsize\nAda\t7\n", "name,size"),
        ("id\t1st place\n7\tBo\n", "id,1st place"),
        ("7", "7"),
    ],
)
def test_a_first_row_of_values_is_no_header(tmp_path: Path, table: str, names: str) -> None:
    documents = documents_of(written(tmp_path / "a.tsv", table))
    lines = [line for line in table.split("\n") if line]
    has_header = len(documents) < len(lines)
    assert [",".join(read.metadata) for read in documents[:1]] == [names][: len(documents)]
    assert len(documents) == len(lines) - has_header
    unread = documents[0].unread if documents else {}
    assert any("without names" in kind for kind in unread) != has_header


def test_a_title_without_delimiters_stands_above_a_table(tmp_path: Path) -> None:
    table = "Report of 2024\n\nname;size\nAda;7\nBo;8\n"
    first, second = documents_of(written(tmp_path / "a.csv", table))
    assert (first.text, second.text) == ("name: Ada\nsize: 7", "name: Bo\nsize: 8")
    assert first.unread == {"lines above the header": 1}


def test_columns_without_a_name_get_their_number(tmp_path: Path) -> None:
    assert rows_of(written(tmp_path / "a.csv", ",name\n0,Ada\n")) == [
        {"column 1": "0", "name": "Ada"}
    ]


def test_a_table_of_one_column_is_read(tmp_path: Path) -> None:
    assert rows_of(written(tmp_path / "a.csv", "name\nAda\n\nBo;x\n")) == [
        {"name": "Ada"},
        {"name": "Bo;x"},
    ]


def test_tabs_alone_delimit_a_tsv_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "name,x\tnote\nAda,1\tb,c,d\n")
    assert rows_of(path) == [{"name,x": "Ada,1", "note": "b,c,d"}]


def test_a_field_that_is_too_long_is_an_error_of_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("index_jobs.sources.lines.files.MAX_ROW_BYTES", 1 << 16)
    text = f"name,note\nAda,x\nBo,{'long ' * 20_000}\nCy,y\n"
    first, error, last = entries_of(written(tmp_path / "a.csv", text))
    assert isinstance(error, SourceError)
    assert error.where == "a.csv, line 3"
    assert isinstance(first, ConvertedDocument)
    assert isinstance(last, ConvertedDocument)


def test_binary_data_with_the_ending_of_a_table_is_refused(tmp_path: Path) -> None:
    assert "binary" in refusal_of(written(tmp_path / "a.csv", b"a,b\n\0\x01,\x02\n")).what


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_a_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    text = "words " * 250
    if ending == "csv":
        path.write_text("name,note\n" + "".join(f"{n},{text}{n}\n" for n in range(ROWS)))
    else:
        columns = {"name": range(ROWS), "note": [f"{text}{n}" for n in range(ROWS)]}
        parquet.write_table(pyarrow.table(columns), path, row_group_size=1_000)
    entries = iter(FILE_TYPES[ending].converter()(path, path.name, Fields()))
    assert peak_bytes(entries) < 3 << 20 < len(text) * ROWS / 2


def peak_bytes(entries: Iterable[object]) -> int:
    tracemalloc.start()
    try:
        assert sum(1 for _ in entries) == ROWS
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Parquet


def test_values_of_parquet_become_text_and_metadata(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.parquet",
        {
            "name": ["Griselda", None],
            "year": [1735, None],
            "night": [date(1735, 5, 18), None],
            "seen": pyarrow.array([datetime(2024, 1, 2, 3, tzinfo=UTC), None]),
            "exact": pyarrow.array([1_700_000_000_000_000_001, None], pyarrow.timestamp("ns")),
            "price": [Decimal("1.50"), None],
            "cities": [["Venice", "Rome"], None],
            "score": [{"acts": 3}, None],
            "picture": [b"\x00", b"\x01"],
        },
    )
    (document,) = documents_of(path)  # nothing is left of the second row
    assert document.suffix == "1"
    assert document.text == (
        "name: Griselda\nyear: 1735\nnight: 1735-05-18\nseen: 2024-01-02T03:00:00+00:00\n"
        'exact: 2023-11-14T22:13:20\nprice: 1.50\ncities: Venice, Rome\nscore: {"acts": 3}'
    )
    assert document.metadata["cities"] == ["Venice", "Rome"]
    assert document.metadata["year"] == 1735
    assert "picture" not in document.metadata


def test_columns_of_parquet_are_named_for_id_title_and_text(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", {"key": [7, 8], "t": ["A", "B"], "body": ["x", "y"]})
    first, second = documents_of(path, Fields(id_field="key", title_field="t", text_field="body"))
    assert (first.id, first.title, first.text) == ("7", "A", "x")
    assert second.suffix == "2"
    assert "`id_field`" in refusal_of(path, Fields(id_field="id")).do


@pytest.mark.parametrize("part", ["nothing", "text", "half", "middle"])
def test_a_damaged_parquet_file_is_refused(tmp_path: Path, part: str) -> None:
    path = table(tmp_path / "a.parquet", {"name": [f"name {n}" for n in range(5_000)]})
    data = path.read_bytes()
    damage = {
        "nothing": b"",
        "text": b"no table",
        "half": data[: len(data) // 2],
        "middle": data[:100] + bytes(2_000) + data[2_100:],
    }
    assert "Parquet" in refusal_of(written(path, damage[part])).what


@pytest.mark.parametrize(
    ("name", "data", "texts"),
    [
        ("a.csv", "sep=;\r\nname;year\r\nx;1\r\n", ["name: x\nyear: 1"]),
        ("a.csv", '"sep=|"\nname|year\nx, y|1\n', ["name: x, y\nyear: 1"]),
        ("a.tsv", 'name\tsize\n"Big" Jim\t3\n"5" nail\t4\n', ['name: "Big" Jim\nsize: 3',
                                                             'name: "5" nail\nsize: 4']),
        ("a.tsv", 'name\tsize\n"two\nlines"\t3\n', ["name: two\nlines\nsize: 3"]),
        ("a.csv", "name,note,note\nx,1,2\n", ["name: x\nnote: 1\nnote (2): 2"]),
        ("a.csv", ",2019,2020\nsales,1,2\ncosts,3,4\n", ["column 1: sales\n2019: 1\n2020: 2",
                                                         "column 1: costs\n2019: 3\n2020: 4"]),
        ("a.csv", "Report of 2024,,\n,,\nname,year,size\nx,1,2\ny,3,4\n",
         ["name: x\nyear: 1\nsize: 2", "name: y\nyear: 3\nsize: 4"]),
    ],
)  # fmt: skip
def test_tables_are_read_as_people_mean_them(
    tmp_path: Path, name: str, data: str, texts: list[str]
) -> None:
    documents = documents_of(written(tmp_path / name, data))
    assert [document.text for document in documents] == texts


def test_lines_above_the_header_are_counted(tmp_path: Path) -> None:
    data = "Report of 2024;;\n\nname;year;size\nx;1;2\ny;3;4\n"
    first, second = documents_of(written(tmp_path / "a.csv", data))
    assert (first.unread, second.unread) == ({"lines above the header": 1}, {})
