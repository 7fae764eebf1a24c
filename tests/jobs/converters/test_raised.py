"""Raised and lowered text, fractions, roots and ruby text: words and numbers beside it stay."""

import re
from pathlib import Path
from typing import Any

import docx
import pptx
import pytest
from docx.oxml import parse_xml

from arag_search.query.forms import normal_terms
from index_jobs.sources.converters.html import page_of
from index_jobs.sources.converters.raised import END, RAISED, READING, written
from tests.support.converted import FILES, document_of, pdf_bytes
from tests.support.converted import written as written_file

PAGES = [
    ("whale<sup>1</sup> and 10<sup>6</sup>", "whale¹ and 10⁶"),
    ("2020<sup>3</sup>, 10<sup>−6</sup>, 2<sup>64</sup>", "2020³, 10⁻⁶, 2⁶⁴"),
    ("H<sub>2</sub>O, CO<sub>2</sub>, 1010<sub>2</sub>", "H₂O, CO₂, 1010₂"),
    ("SO<sub>4</sub><sup>2−</sup>, Fe<sup>3+</sup>", "SO₄²⁻, Fe³⁺"),
    ("m<sup>2</sup>, mol<sup>-1</sup>, W/(m<sup>2</sup>·K)", "m², mol⁻¹, W/(m²·K)"),
    # Marks of notes behind short words, letters, and words
    ("Lee<sup>1</sup>, Kim<sup>2, 3</sup>, cat<sup>12</sup>", "Lee ¹, Kim ²,³, cat ¹²"),
    ("Smith<sup>a</sup>, end.<sup>b</sup>", "Smith ᵃ, end. ᵇ"),
    ("<sup>1</sup>Department, <sup>a</sup>Institute", "¹Department, ᵃ Institute"),
    ("12.5<sup>a</sup>, 3<sup>b</sup>", "12.5 ᵃ, 3 ᵇ"),
    ("Pro<sup>new</sup>page, word<sup>*</sup>, word<sup>(a)</sup>", "Pro new page, word*, word⁽ᵃ⁾"),
    ("whale<sup>1</sup><sup>,</sup><sup>2</sup>", "whale¹,²"),
    ("鯨<sup>1</sup>は", "鯨 ¹は"),
    ("whale<span style='vertical-align:super'>1</span>", "whale¹"),
    ("H<span style='vertical-align: -0.3em'>2</span>O", "H₂O"),
    ("whale<a epub:type='noteref' href='#n'>1</a>", "whale¹"),
    ("whale<i class='superscript'>1</i>", "whale¹"),
    ("whale<a role='doc-noteref'><sup>1</sup></a>", "whale¹"),
    # What stays
    ("whale<sup>[7]</sup>, <sup><a href=x>[note 1]</a></sup>", "whale[7], [note 1]"),
    ("2<sup>nd</sup>, XX<sup>e</sup>, M<sup>me</sup>", "2nd, XXe, Mme"),
    ("<sup>Made with love, by all of us</sup>", "Made with love, by all of us"),
    ("V<sub>max</sub>, pK<sub>a</sub>, PM<sub>2.5</sub>, NO<sub>x</sub>", "Vmax, pKa, PM2.5, NOx"),
    ("a<sup></sup>b<sup><script>x</script></sup>c", "abc"),
    # Other signs
    ("Tea<sup>TM</sup>, 38 <sup>o</sup>C, 10<sup>0</sup>", "Tea™, 38 °C, 10⁰"),
    ("<sup>14</sup>C, <sup>99m</sup>Tc, <sup>1</sup>I am", "14C, 99mTc, ¹I am"),
    ("x<sup>n+1</sup>, (1+r)<sup>n</sup>, e<sup>iπ</sup>, x<sub>i</sub>", "xⁿ⁺¹, (1+r)ⁿ, e^iπ, xᵢ"),
    ("<sup>1</sup>/<sub>2</sub>, 1<sup>1</sup>&frasl;<sub>4</sub>, 3&frasl;4", "1/2, 1 1/4, 3/4"),
    # Formulas
    ("3<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "3 1/2"),
    ("<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>c</mi></mfrac>", "(a+b)/c"),
    ("<math><msup><mi>x</mi> <mn>2</mn></msup><mo>+</mo><msqrt><mn>2</mn></msqrt>", "x²+√2"),
    ("<math><mroot><mi>x</mi><mn>3</mn></mroot><mo>=</mo><msub><mi>a</mi><mn>1</mn>", "∛x=a₁"),
    ("<math><mover><mi>x</mi><mo>¯</mo></mover>", "x¯"),
    ("<math><msup><mi>e</mi><msqrt><mi>x</mi></msqrt></msup>", "e^√x"),
    # Readings
    ("<ruby>漢<rt>かん</rt></ruby><ruby>字<rt>じ</rt></ruby>です。", "漢字です (かんじ)。"),
    ("<ruby>食<rt>た</rt></ruby>べるのが<ruby>好<rt>す</rt></ruby>き", "食べるのが好き (た す)"),
]  # fmt: skip


@pytest.mark.parametrize(("markup", "text"), PAGES)
def test_text_that_does_not_stand_on_the_line_is_written_with_signs(markup: str, text: str) -> None:
    assert page_of(f"<p>{markup}").text == text


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("whale<sup>1</sup> 10<sup>6</sup> 2020<sup>3</sup>", "whale 10 2020"),
        ("Lee<sup>1</sup> Smith<sup>a</sup>", "lee smith a"),
        ("m<sup>2</sup> H<sub>2</sub>O 2<sup>nd</sup>", "m2 h2o 2nd"),
        ("SO<sub>4</sub><sup>2-</sup>", "so4"),
        ("<sup>14</sup>C 1<sup>1</sup>/<sub>2</sub>", "14c 1 1 2"),
    ],
)  # fmt: skip
def test_words_and_numbers_beside_it_are_searched_as_themselves(markup: str, words: str) -> None:
    assert " ".join(normal_terms(page_of(f"<p>{markup}").text, "none")) == words


def test_a_heading_with_raised_text_is_a_section_of_that_name() -> None:
    assert page_of("<h2>Area in m<sup>2</sup></h2>x").outline[0].name == "Area in m²"


def test_marks_that_nothing_ends_or_that_are_too_deep_are_left_out() -> None:
    assert written(f"a{RAISED}2{READING}x") == "a2x"
    assert not re.search("[\x00-\x1f]", written(f"a{RAISED * 50}2{END * 60}"))
    assert page_of("<sup>" * 10_000 + "2").text == "²"
    for long in ("¹", "漢", f"{READING}x", f"{RAISED}a", f"{END}{RAISED}", "1⁄"):
        assert "1" in written(f"1{RAISED}1{END}{long * 30_000}")


# Word and slides

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def up(text: str) -> str:
    return run(text, '<w:vertAlign w:val="superscript"/>')


def part(name: str, content: str) -> str:
    return f"<m:{name}>{content}</m:{name}>"


def term(text: str) -> str:
    return part("r", part("t", text))


def ruby(reading: str, base: str) -> str:
    return (
        f"<w:r><w:ruby><w:rubyPr/><w:rt>{run(reading)}</w:rt><w:rubyBase>{run(base)}</w:rubyBase>"
        "</w:ruby></w:r>"
    )


SUM = part("naryPr", '<m:chr m:val="∑"/>') + part("sub", term("i=1")) + part("sup", term("n"))
RUNS = [
    (run("10") + up("−") + up("6") + run(" m"), "10⁻⁶ m"),
    (run("H") + run("2", '<w:vertAlign w:val="subscript"/>') + run("O"), "H₂O"),
    (run("whale") + run("1", '<w:rStyle w:val="Up"/>') + run("."), "whale¹."),
    (run("whale") + run("1", '<w:position w:val="6"/>') + run("."), "whale¹."),
    (run("Lee") + up("a") + run(", Kim") + up("1"), "Lee ᵃ, Kim ¹"),
    (run("whale") + up("<w:footnoteReference/>") + run("s"), "whales"),
    (part("f", part("num", term("1")) + part("den", term("2"))), "1/2"),
    (part("sSup", part("e", term("x")) + part("sup", term("2"))), "x²"),
    (part("rad", part("deg", term("3")) + part("e", term("x"))), "∛x"),
    (part("rad", part("e", term("2"))), "√2"),
    (part("d", part("e", term("a")) + part("e", term("b"))), "(a|b)"),
    (part("func", part("fName", term("sin")) + part("e", term("x"))), "sin x"),
    (part("nary", SUM + part("e", term("x"))), "∑ᵢ₌₁ⁿx"),
    (ruby("かん", "漢") + ruby("じ", "字") + run("です。"), "漢字です (かんじ)。"),
    (ruby("とう きょう", "東京") + run(", Tokyo"), "東京 (とう きょう), Tokyo"),
    # Symbols
    (run("250 ") + '<w:r><w:sym w:font="Symbol" w:char="F06D"/></w:r>' + run("g"), "250 μg"),
    (run("m", '<w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/>') + run("g"), "μg"),
    (run("\uf0b3", '<w:rFonts w:ascii="Symbol"/>') + run(" 38 \uf0b0C"), "≥ 38 °C"),
    (run("p", '<w:rStyle w:val="Greek"/>') + run("p"), "πp"),
    ('<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>' + run(" yes"), "☑ yes"),
    ('<w:r><w:sym w:font="Wingdings 2" w:char="F052"/></w:r>' + run(" yes"), "☑ yes"),
    ('<w:r><w:sym w:font="MS Gothic" w:char="2610"/></w:r>' + run(" no"), "☐ no"),
    ("<w:r><w:fldChar><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>",
     "☒"),
    ('<w:r><w:sym w:font="Webdings" w:char="F021"/><w:sym w:char="D800"/></w:r>', "��"),
]  # fmt: skip


@pytest.mark.parametrize(("runs", "text"), RUNS)
def test_a_word_document_is_read_as_it_is_seen(tmp_path: Path, runs: str, text: str) -> None:
    document: Any = docx.Document()
    for name, properties in (
        ("Up", '<w:vertAlign w:val="superscript"/>'),
        ("Greek", '<w:rFonts w:ascii="Symbol"/>'),
    ):
        style = f'<w:style {W} w:styleId="{name}"><w:rPr>{properties}</w:rPr></w:style>'
        document.styles.element.append(parse_xml(style))
    document.element.body.insert(0, parse_xml(f"<w:p {W} {M}>{runs}</w:p>"))
    document.save(tmp_path / "a.docx")
    read = document_of(tmp_path / "a.docx")
    assert read.text == text
    unknown = text.count("\ufffd")
    assert read.unread == ({"symbols of unknown meaning": unknown} if unknown else {})


def test_slides_are_read_as_they_are_seen(tmp_path: Path) -> None:
    deck: Any = pptx.Presentation()
    frame = deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9).text_frame
    texts = ("10", "6", " H", "2", "O ", "m", "g \ufffd ", "ü")
    runs = [frame.paragraphs[0].add_run() for _ in texts]
    for new_run, text in zip(runs, texts, strict=True):
        new_run.text = text
    runs[1].font._element.set("baseline", "30000")
    runs[3].font._element.set("baseline", "-25%")
    runs[5].font.name = "Symbol"
    runs[7].font.name = "Wingdings"
    deck.save(str(tmp_path / "a.pptx"))
    read = document_of(tmp_path / "a.pptx")
    assert read.text == "[slide 1]\n10⁶ H₂O μg � ✓"
    assert read.unread == {"symbols of unknown meaning": 1}


def test_the_text_of_a_slide_with_a_formula_is_read(tmp_path: Path) -> None:
    deck: Any = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    shape = slide.shapes.add_textbox(0, 0, 9, 9)
    shape.text_frame.text = "The area is "
    area = part("sSup", part("e", term("x")) + part("sup", term("2")))
    shape.text_frame.paragraphs[0]._p.append(parse_xml(f"<m:oMath {M}>{area}</m:oMath>"))
    space = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    both = parse_xml(f'<mc:AlternateContent xmlns:mc="{space}"><mc:Choice/></mc:AlternateContent>')
    shape._element.addprevious(both)
    both[0].append(shape._element)
    deck.save(str(tmp_path / "a.pptx"))
    assert document_of(tmp_path / "a.pptx").text == "[slide 1]\nThe area is x²"


# PDF


def drawn(path: Path, *pieces: tuple[str, float, float]) -> Path:
    """Write a page with texts, each with its size and its rise in points; one that stands below
    another one begins with a backspace."""
    content = b"BT 72 720 Td "
    for text, size, rise in pieces:
        back = b"[%d] TJ " % (len(text) * 550) if text[0] == "\b" else b""
        shown = text.strip("\b").encode("cp1252").hex().encode()
        content += b"/F1 %.1f Tf %.1f Ts %s<%s> Tj " % (size, rise, back, shown)
    stream = b"<< /Length %d >>\nstream\n%s ET\nendstream" % (len(content) + 3, content)
    data = pdf_bytes([[(12, "x")]], page=b"/Contents 6 0 R", more=[stream])
    return written_file(path, data)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([("whale", 12, 0), ("1", 8, 4.5), (" swam 10", 12, 0), ("6", 8, 4.5), (" m", 12, 0)],
         "whale¹ swam 10⁶ m"),
        ([("H", 12, 0), ("2", 8, -2), ("O in 2020", 12, 0), ("3", 8, 4.5), (".", 12, 0)],
         "H₂O in 2020³."),
        ([("Smith", 12, 0), ("a", 8, 4.5), (", Lee", 12, 0), ("1,2", 8, 4.5), (" of", 12, 0)],
         "Smith ᵃ, Lee ¹,² of"),
        ([("Add 3 ", 12, 0), ("1", 8, 5), ("\b2", 8, -4), (" cup", 12, 0)], "Add 3 1/2 cup"),
        ([("SO", 12, 0), ("2-", 8, 5), ("\b\b4", 8, -3), (" is", 12, 0)], "SO₄²⁻ is"),
        ([("1", 6, 4), ("See page 12", 9, 0)], "¹See page 12"),
        ([("Small ", 12, 0), ("print 12", 8, 0), (" of 7", 12, 0)], "Small print 12 of 7"),
    ],
)  # fmt: skip
def test_raised_text_of_a_page_is_written_with_signs(
    tmp_path: Path, pieces: list[tuple[str, float, float]], text: str
) -> None:
    assert document_of(drawn(tmp_path / "a.pdf", *pieces)).text == f"[page 1]\n{text}"


def test_raised_text_that_libreoffice_has_written_is_read() -> None:
    text = document_of(FILES / "raised_of_libreoffice.pdf").text
    assert text.startswith(
        "[page 1]\nThe whale¹ swam in H₂O at 10⁶ m in 2020³. Smith ᵃ, Lee ¹,². Use 1/2 cup and m²,"
    )
