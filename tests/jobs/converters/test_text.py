"""Plain text, its titles and its encodings; and the registry of types."""

import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

from arag_search.errors import MissingExtraError, SourceError
from index_jobs.sources.converters.html import decoded_markup, page_of
from index_jobs.sources.converters.registry import (
    FILE_TYPES,
    FileType,
    file_type_of,
    file_types_help,
)
from index_jobs.sources.converters.text import front_values, markdown
from index_jobs.sources.encodings import Decoded, decoded, stream_encoding
from tests.support.converted import document_of, documents_of, refusal_of, written
from tests.support.guides import plain_text
from tests.support.odd_files import FOLDER

JAPANESE = "これは日本語の文章です。東京は大きな都市です。"
EVERY_LETTER = "Händel, Øresund, œuvre, 東京, 🎻, \u200f"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["", "plain", EVERY_LETTER])
def test_unicode_is_decoded_without_its_mark(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    assert decoded(data, "a.txt").text == text
    assert data.decode(stream_encoding(BytesIO(data), "a.txt")) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["text", "Grüße, 🎻\n" * 20_000, "Вивальди родился в Венеции.\n" * 9, JAPANESE * 9]
)
def test_utf_16_without_a_mark_is_known_by_its_nul_bytes(text: str, encoding: str) -> None:
    text += "\n2024"
    data = text.encode(encoding)
    assert decoded(data, "a.txt").text == text
    assert stream_encoding(BytesIO(data), "a.txt") == encoding
    if len(text) > 9:
        assert decoded(data[:-1], "a.txt") == Decoded(text[:-1] + "\ufffd", 1)


@pytest.mark.parametrize(
    "data",
    [
        *(b"\0", b"\0" * 5_000, b"a\0b", b"<p>\0\1\2", b"\x7fELF\x00\x01", b"\x89PNG\r\n\0\0"),
        struct.pack("<500H", *range(500)),
        struct.pack("<500I", *range(97, 597)),
        struct.pack("<500d", *range(500)),
        "text".encode("utf-32-le"),
        bytes(range(256)) * 9,
    ],
)
def test_binary_data_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError, match="binary"):
        decoded(data, "a.txt")
    with pytest.raises(SourceError, match="binary"):
        stream_encoding(BytesIO(data), "a.txt")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_nul_in_a_text_is_a_blank(encoding: str) -> None:
    text = "Händel\0wrote operas. The log breaks off:" + "\0" * 4_096 + "\nIt goes on."
    assert decoded(text.encode(encoding), "a.txt").text == text.replace("\0", " ")
    assert decoded(b"\xef\xbb\xbf\0\0", "a.txt").text == "  "


def test_nul_in_a_table_is_a_blank(tmp_path: Path) -> None:
    (row,) = documents_of(
        written(tmp_path / "a.csv", "name,note\nHändel,wrote\0operas in London\n")
    )
    assert row.text == "name: Händel\nnote: wrote operas in London"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
def test_a_line_ends_with_cr_lf_or_both(tmp_path: Path, end: str, encoding: str) -> None:
    text = "---\ntitle: The Sea\ntags: [ships]\n---\n# Wind\n\nfair\n\n# Waves\n\nhigh\n"
    path = written(tmp_path / "a.md", text.replace("\n", end).encode(encoding))
    document = document_of(path)
    assert (document.title, document.front) == ("The Sea", {"tags": ("ships",)})
    assert front_values(path, "a.md") == document.front
    assert document.text.replace("\r\n", "\n") == "\n" * 4 + text.partition("---\n# ")[2].join(
        ("# ", "")
    )
    assert [(unit.first, unit.name) for unit in document.outline] == [(4, "Wind"), (8, "Waves")]
    plain = document_of(written(tmp_path / "a.txt", f"one{end}two{end}"))
    assert (
        plain.text == f"one{end}two{end}".replace("\r\n", "\n").replace("\r", "\n") or "\r\n" in end
    )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Title\n=====\n\nText", "Title"),
        ("=====\nTitle\n=====\n", "Title"),
        (".. comment\n\nÜber uns\n--------\n\nNext\n~~~~", "Über uns"),
        ("Just text\n\n- item\n- item", ""),
        ("Text\n..\n", ""),
    ],
)
def test_the_title_of_restructured_text_is_its_first_heading(
    tmp_path: Path, text: str, title: str
) -> None:
    document = document_of(written(tmp_path / "a.rst", text))
    assert document.title == title
    assert document.text == text


def test_directives_of_restructured_text_are_not_run(tmp_path: Path) -> None:
    written(tmp_path / "secret.txt", "TOPSECRET")
    path = written(tmp_path / "a.rst", ".. include:: secret.txt\n\n.. raw:: html\n   :url: x\n")
    assert "TOPSECRET" not in document_of(path).text


def test_a_file_that_is_too_large_or_absent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("index_jobs.sources.converters.registry.MAX_FILE_BYTES", 10)
    assert "too large" in refusal_of(written(tmp_path / "a.md", "x" * 11)).what
    for file_type in FILE_TYPES.values():
        path = tmp_path / f"absent{file_type.endings[0]}"
        with pytest.raises(SourceError, match=r"No such file"):
            document_of(path)


def test_the_ending_says_the_type() -> None:
    for file_type in FILE_TYPES.values():
        assert callable(file_type.converter())
        for ending in file_type.endings:
            assert file_type_of(f"folder.txt/Name{ending.upper()}") is file_type
    assert file_type_of("a.csv.gz") is file_type_of("a.") is None
    assert file_type_of("Makefile") is file_type_of("b.d/.pdf") is file_type_of("a.org")


def test_the_guide_and_the_help_list_every_type() -> None:
    help_text = file_types_help("")
    guide = plain_text("index_jobs/README.md")
    for name, file_type in FILE_TYPES.items():
        endings = " ".join(file_type.endings)
        shown = f"{name}{' *' * bool(file_type.packages)}"
        assert f"| {shown} | {endings} | {file_type.summary}" in guide
        assert f"\n  {shown} " in f"\n{help_text}"
        assert all(ending in help_text.split() for ending in file_type.endings)


def test_a_type_whose_package_is_absent_names_the_extra() -> None:
    absent = FileType("x", (".x",), "x", "text:convert", {"absent-package": "absent_package"})
    with pytest.raises(MissingExtraError, match=r"absent-package") as caught:
        absent.converter()
    assert "files" in str(caught.value)


def test_the_registry_and_all_converters_are_imported_without_their_libraries() -> None:
    code = """if True:
        import sys
        from index_jobs.sources.converters.registry import FILE_TYPES
        assert not any(name.startswith("index_jobs.sources.converters.") and
                       not name.endswith(("registry", "converters")) for name in sys.modules)
        for file_type in FILE_TYPES.values():
            file_type.converter()
        libraries = {"chardet", "docx", "lxml", "openpyxl", "pptx", "pyarrow",
                     "pypdfium2", "selectolax"}
        print(sorted(libraries & sys.modules.keys()))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('---\r\ntitle: "My: title"\r\ndate: 2024\r\n---\r\n# Other\r\n', "My: title"),
        ("+++\ntitle = 'In TOML'\n+++\n# x", "In TOML"),
        ("---\nfoo: [\n---\n# After a damaged one", "After a damaged one"),
        ("---\ntags: [a]\n---\n\n# After another field", "After another field"),
        ("````\n# no\n```\n# no\n````\n# After four\n", "After four"),
        ("   ```\n   # no\n   ```\n# After an indented one", "After an indented one"),
        ("    # code\n\n# After indented code", "After indented code"),
        ("<!--\n# no\n-->\n# After a comment", "After a comment"),
        ("Underlined\n===\n\n# Later", "Underlined"),
        ("# *One* `two` [three](http://x.org) &amp; four #\n", "One two three & four"),
        ("#no\n\n####### no\n\n## Yes", "Yes"),
        ("A very long paragraph. " * 20 + "\n---\n# Yes", "Yes"),
        ("no heading\n\n---\n\nno heading", ""),
    ],
)
def test_the_title_of_markdown_is_that_of_its_front_matter_or_its_first_heading(
    text: str, title: str
) -> None:
    assert markdown(text)[0] == title
    assert markdown(text.replace("\r", "").replace("\n", "\r\n"))[0] == title


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        ("①㈱髙島屋の株価", "cp932", "shift_jis"),
        ("①㈱髙島屋の株価", "cp932", "windows-31j"),
        ("镕基总理€", "gb18030", "gb2312"),
        ("שלום עולם", "iso8859_8", "iso-8859-8-i"),
        ("ภาษาไทย “x”", "cp874", "windows-874"),
        ("naïve café", "utf-8", "utf-16"),
        ("“quoted” €5", "cp1252", "iso-8859-1"),
    ],
)
def test_labels_mean_what_they_mean_to_browsers(text: str, codec: str, label: str) -> None:
    page = f"<!-- <meta charset=koi8-r> --><meta charset={label}><title>{text}</title><p>{text}"
    read = page_of(decoded_markup(page.encode(codec), "x").text)
    assert (read.title, read.text) == (text, text)


def test_iso_2022_jp_has_the_circled_numbers_of_windows() -> None:
    kana = bytes(byte & 0x7F for byte in "①㈱日本".encode("euc_jis_2004"))
    data = b"\x1b$B" + kana + b"\x1b(B abc"
    assert decoded(data, "x", "iso-2022-jp").text == "①㈱日本 abc"


def test_codes_for_terminals_are_left_out_and_counted() -> None:
    assert document_of(FOLDER / "colours.log").unread == {"terminal codes left out": 10}
