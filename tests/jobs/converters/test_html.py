"""Web pages: what a reader sees of them, in any encoding, and hostile ones."""

from pathlib import Path

import pytest

from index_jobs.sources.converters.html import page_of
from tests.support.converted import document_of, refusal_of, written


def text_of(tmp_path: Path, markup: str) -> str:
    return document_of(written(tmp_path / "page.html", markup)).text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>One<p>Two &amp; &eacute;&#x21;", "One\n\nTwo & é!"),
        ("<p>a <b>b</b>c\n  <i> d</i></p>", "a bc d"),
        ("a<br>b<br><br>c", "a\nb\n\nc"),
        ("<div>a</div><div>b<div>c</div></div>", "a\nb\nc"),
        ("<h2>Head</h2>Text", "## Head\n\nText"),
        ("<ul><li>x<li><p>y</ul>z", "- x\n\n- y\n\nz"),
        ("<pre>def f():\n    pass</pre>", "def f():\n    pass"),
        ("in&shy;de&shy;ci&shy;sive", "indecisive"),
        ("a&nbsp;b", "a b"),
        ("x &lt;b&gt; y", "x <b> y"),
        ("<p>a</p><!-- no --><p>b</p>", "a\n\nb"),
    ],
)
def test_markup_becomes_paragraphs_and_lines(tmp_path: Path, markup: str, text: str) -> None:
    assert text_of(tmp_path, f"<body>{markup}") == text


def test_cells_of_a_row_are_separated(tmp_path: Path) -> None:
    table = (
        "<table><tr><th>Year<th>City<th>Opera</tr><tr><td><p>1714</p><td></td><td>Orlando</tr>"
        "<tr><td></td><td>Rome</td><td></td></tr></table>"
    )
    assert text_of(tmp_path, table) == "Year | City | Opera\n1714 | | Orlando\n| Rome"


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>var a = '<p>no</p>';</script>",
        "<style>p { color: no }</style>",
        "<nav><a href=x>no</a></nav>",
        "<div role=navigation>no</div>",
        "<p hidden>no</p>",
        "<p style='color: red; DISPLAY : none'>no</p>",
        "<span aria-hidden=true>no</span>",
        "<template><p>no</p></template>",
        "<noscript>no</noscript>",
        "<iframe src='file:///etc/passwd'>no</iframe>",
        "<button type=submit>no</button>",
        "<img src='http://127.0.0.1:9/no.png' alt=no>",
    ],
)
def test_what_a_reader_does_not_see_is_left_out(tmp_path: Path, hidden: str) -> None:
    assert text_of(tmp_path, f"<p>seen</p>{hidden}<p>too</p>") == "seen\n\ntoo"


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title> A &amp;\n B </title><h1>C</h1>", "A & B"),
        ("<h1>C <i>d</i></h1><h1>E</h1>", "C d"),
        ("<title></title><svg><title>no</title></svg><p>x", ""),
    ],
)
def test_the_title_is_that_of_the_head_or_the_first_heading(
    tmp_path: Path, markup: str, title: str
) -> None:
    assert document_of(written(tmp_path / "page.html", markup)).title == title


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ('<meta charset="windows-1251">', "cp1251"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', "koi8-r"),
        ('<?xml version="1.0" encoding="cp1251"?>', "cp1251"),
        ("<meta charset=iso-8859-1>", "utf-16"),
        ("<meta charset=nonsense>", "utf-8"),
        ("<meta charset=hex>", "utf-8"),
        ("", "cp1251"),
    ],
)
def test_the_encoding_is_declared_or_detected(
    tmp_path: Path, declaration: str, encoding: str
) -> None:
    sentence = "Антонио Вивальди родился в Венеции и писал оперы для её театров."
    path = written(tmp_path / "a.html", f"{declaration}<p>{sentence}".encode(encoding))
    assert document_of(path).text == sentence


def test_latin_1_means_windows_as_in_browsers(tmp_path: Path) -> None:
    path = written(tmp_path / "a.htm", "<meta charset=iso-8859-1>“naïve” – €".encode("cp1252"))
    assert document_of(path).text == "“naïve” – €"


def test_empty_elements_of_xhtml_hold_nothing(tmp_path: Path) -> None:
    markup = (
        '<?xml version="1.0"?><html><head><title/><script src="x"/></head><body>'
        '<a id="x"/><p>One<br/>two</p><div/><p>Three</p></body></html>'
    )
    assert document_of(written(tmp_path / "a.xhtml", markup)).text == "One\ntwo\n\nThree"


@pytest.mark.parametrize("tag", ["div", "span", "b", "blockquote", "ul><li"])
def test_ten_thousand_nested_elements_are_read(tmp_path: Path, tag: str) -> None:
    path = written(tmp_path / "a.html", f"<{tag}>" * 10_000 + "end")
    assert document_of(path).text.endswith("end")


def test_thousands_of_unclosed_elements_of_style_are_read(tmp_path: Path) -> None:
    styles = "".join(f"<b id={number}>" for number in range(5_000))
    assert text_of(tmp_path, styles + "<p>x" * 5_000).count("x") == 5_000


def test_a_list_of_many_unclosed_items_is_read(tmp_path: Path) -> None:
    text = text_of(tmp_path, "<ul>" + "<li>item" * 50_000)
    assert text.count("- item") == 50_000


@pytest.mark.parametrize("data", [b"", b"   ", b"<", b"<!--", b"<html>", b"<p title='"])
def test_a_page_without_text_is_an_empty_document(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path / "a.html", data)
    assert document_of(path).text in ("", "<")


def test_a_binary_file_with_the_ending_of_a_page_is_refused(tmp_path: Path) -> None:
    assert "binary" in refusal_of(written(tmp_path / "a.html", b"<p>\x00\x01\x02")).what


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<h2><button>What is it?</button></h2><p>This.", "## What is it?\n\nThis."),
        ("<div><button aria-expanded=false>What is it?</button><div>This.</div></div>",
         "What is it?\nThis."),
        ("<table><tr><th><button>Name</button><th><button>Year</button><tr><td>a<td>1</table>",
         "Name | Year\na | 1"),
        ("<p>Now<button type=submit>Send</button>, then", "Now, then"),
        ("<p>a<span style='display:block'>b</span>c", "a\nb\nc"),
        ("<p>a<b style='color: red; display : inline-block'>b</b>c", "a b c"),
        ("<p>a<span style='display:inline'>b</span>c", "abc"),
        ("<p>x<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>y",
         "x漢字 (かんじ)y"),
        ("<p>So <span class=katex><span class=katex-mathml><math><semantics><mrow><mi>E</mi>"
         "<mo>=</mo><mi>m</mi></mrow><annotation encoding='application/x-tex'>E=m</annotation>"
         "</semantics></math></span><span class=h aria-hidden=true>E=m</span></span> is",
         "So E=m is"),
        ("<dialog open>Now</dialog><dialog>Later</dialog>then", "Now\n\nthen"),
        ("before<textarea>note</textarea>after", "before note after"),
        ("<details><summary>More</summary>Hidden</details>", "More\nHidden"),
    ],
)  # fmt: skip
def test_the_text_is_what_a_reader_sees_with_its_boundaries(body: str, text: str) -> None:
    assert page_of(body).text == text


def test_ruby_text_that_is_not_closed_and_long_terms_take_little_time() -> None:
    assert page_of("<ruby>" + "a<rt>b" * 20_000).text.startswith("a")
    page = page_of(f'<dl><dt id="a.b">{"a." * 200_000}<dd>x</dl>')
    assert page.outline[0].name.startswith("a.a.")


@pytest.mark.parametrize(
    ("markup", "read"),
    [
        ("<div role=tabpanel hidden>In a tab", "In a tab"),
        ("<p hidden=until-found>Found", "Found"),
        ("<button aria-controls='a b'>Open</button><p id=a hidden>A<p id=b style='display:none'>B",
         "Open\n\nA\n\nB"),
        ("<a data-bs-toggle=collapse data-bs-target='#a'>More</a><div id=a style='display: none'>A",
         "More\nA"),
        ("<a href='#a' data-toggle=tab>More</a><div id=a aria-hidden=true>A", "More\nA"),
        ("<a onclick=\"show('a'); return 0\">More</a><div id=a style=display:none>A", "More\nA"),
        ("<a href=\"javascript:toggle('a')\">More</a><div id=a style=display:none>A", "More\nA"),
        ("Text <a href='#n1'>note</a><aside id=n1 hidden>N", "Text note\n\nN"),
        ("<aside epub:type='footnote' hidden>Note", "Note"),
        ("<section role=doc-endnotes style='visibility:hidden'>Notes", "Notes"),
        ("<div role=tabpanel hidden><p hidden>No</p>Yes", "Yes"),
    ],
)  # fmt: skip
def test_hidden_panels_that_a_reader_opens_are_text(tmp_path: Path, markup: str, read: str) -> None:
    assert text_of(tmp_path, markup) == read


@pytest.mark.parametrize(
    "hidden",
    [
        "<p id=other hidden>no",
        "<dialog id=a>no</dialog>",
        "<div id=a role=menu hidden>no",
        "<div id=a hidden><a href=x>no</a> <a href=y>not</a>",
        "<div id=b style='display:none'>no",
    ],
)
def test_other_hidden_text_is_left_out_and_counted(tmp_path: Path, hidden: str) -> None:
    controls = "<button aria-controls=a>x</button><a aria-controls=b aria-haspopup=menu>y</a>"
    read = document_of(written(tmp_path / "a.html", controls + hidden))
    assert read.text.replace(" ", "") == "xy"
    assert read.unread == {"hidden elements left out of pages": 1}
