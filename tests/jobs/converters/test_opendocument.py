"""OpenDocument texts, slides and sheets: what a reader sees of them, as in files of Office."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.converted import FILES, archive, document_of, refusal_of, with_member

SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name.replace("draw", "drawing")}:1.0"'
    for name in ("office", "style", "text", "table", "draw", "presentation")
) + (
    ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)
STYLES = """
    <style:style style:name="Up" style:family="text">
      <style:text-properties style:text-position="super 58%"/></style:style>
    <style:style style:name="Down" style:family="text" style:parent-style-name="Letters">
      <style:text-properties style:text-position="-33% 58%"/></style:style>
    <style:style style:name="Greek" style:family="text">
      <style:text-properties style:font-name="Symbol1"/></style:style>
    <style:style style:name="Raised" style:family="paragraph" style:parent-style-name="Title">
      <style:text-properties style:text-position="33% 58%"/></style:style>
    <style:style style:name="Unnumbered" style:family="paragraph" style:list-style-name=""/>
    <style:style style:name="ce" style:family="table-cell">
      <style:text-properties style:font-name="Wingdings"/></style:style>
    <text:list-style style:name="L">
      <text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>
      <text:list-level-style-number text:level="2" style:num-format="a" style:num-prefix="("
        style:num-suffix=")" text:start-value="3"/>
      <text:list-level-style-number text:level="3" style:num-format="i" style:num-suffix="."
        text:display-levels="3"/></text:list-style>
    <text:list-style style:name="B"><text:list-level-style-bullet text:level="1"/></text:list-style>
    <text:outline-style style:name="Outline">
      <text:outline-level-style text:level="1" style:num-format="I"/>
      <text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>
    </text:outline-style>"""


def opened(path: Path, body: str, *more: tuple[str, str]) -> Path:
    kind = {".odt": "text", ".ods": "spreadsheet", ".odp": "presentation"}[path.suffix]
    content = (
        f"<office:document-content {SPACES}><office:automatic-styles>{STYLES}"
        f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    return archive(path, {"mimetype": mimetype, "content.xml": content, **dict(more)})


def p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def span(text: str, style: str) -> str:
    return f'<text:span text:style-name="{style}">{text}</text:span>'


def items(*texts: str, about: str = 'text:style-name="L"') -> str:
    inside = "".join(f"<text:list-item>{text}</text:list-item>" for text in texts)
    return f"<text:list {about}>{inside}</text:list>"


def heading(text: str, level: int, more: str = "") -> str:
    return f'<text:h text:outline-level="{level}" {more}>{text}</text:h>'


def rows(*cells: str) -> str:
    return f"<table:table><table:table-row>{''.join(cells)}</table:table-row></table:table>"


def cell(text: str, more: str = "") -> str:
    return f"<table:table-cell {more}>{text}</table:table-cell>"


NOTE = (
    '<text:note text:note-class="{0}"><text:note-citation>1</text:note-citation><text:note-body>'
    "<text:p>{0}.</text:p></text:note-body></text:note>"
)
TEXTS = {
    # Blanks, as a reader sees them
    p("a\n   <text:span>b</text:span><text:s text:c='3'/>c<text:tab/>d<text:line-break/>e"): (
        "a b   c\td\ne"
    ),
    p("a<text:s text:c='999999999'/>b"): f"a{' ' * 80}b",
    p("one<text:soft-page-break/>two<!-- no --> three<?no no?> four"): "onetwo three four",
    # Raised text, symbols, ruby text
    p(f"whale{span('1', 'Up')} 10{span('6', 'Up')} H{span('2', 'Down')}O"): "whale¹ 10⁶ H₂O",
    p(f"x{span('2' + span('', ''), 'Up')} and {span('m', 'Greek')}g"): "x² and μg",
    p("<text:ruby><text:ruby-base>東京</text:ruby-base><text:ruby-text>とうきょう</text:ruby-text>"
      "</text:ruby>駅"): "東京駅 (とうきょう)",
    # Numbers of lists and headings
    items(p("x"), p("y") + items(p("z") + items(p("deep"), about=""), p("w"), about=""), p("v")): (
        "1. x\n2. y\n(c) z\n2.c.i. deep\n(d) w\n3. v"
    ),
    items(p("x") + p("more")) + p("p") + items(p("y")): "1. x\n\nmore\n\np\n\n1. y",
    items(p("x")) + p("p") + items(p("y"), about='text:style-name="L" text:continue-numbering='
    '"true"'): "1. x\n\np\n\n2. y",
    items(p("x"), about='text:style-name="L" xml:id="a"') + items(p("q")) + items(p("y"),
    about='text:continue-list="a" text:style-name="L"'): "1. x\n1. q\n2. y",
    '<text:list text:style-name="L"><text:list-header><text:p>no</text:p></text:list-header>'
    '<text:list-item text:start-value="7"><text:p>x</text:p></text:list-item><text:list-item>'
    "<text:p>y</text:p></text:list-item></text:list>": "no\n\n7. x\n8. y",
    items(p("x"), about='text:style-name="B"') + items(p("y"), about=""): "- x\n- y",
    heading("A", 1) + heading("B", 2) + heading("C", 2, 'text:start-value="5"')
    + heading("D", 1) + heading("E", 2, 'text:is-list-header="true"')
    + heading("F", 2, 'text:style-name="Unnumbered"') + heading("G", 2): (
        "# I A\n\n## I.1 B\n\n## I.5 C\n\n# II D\n\n## E\n\n## F\n\n## II.1 G"
    ),
    # Notes, changes, comments, boxes, sections, indexes
    p(f"a{NOTE.format('endnote')} b{NOTE.format('footnote')}."): "a b.\n\nfootnote.\n\nendnote.",
    "<text:tracked-changes><text:changed-region><text:deletion>"
    + p("gone" + NOTE.format("footnote"))
    + "</text:deletion></text:changed-region></text:tracked-changes>"
    + p('a<text:change-start text:change-id="c"/>b<text:change-end text:change-id="c"/>'): "ab",
    p("a<office:annotation><dc:creator>Ann</dc:creator><text:p>why</text:p></office:annotation>"
      "b"): "ab",
    p("a<draw:frame><svg:title>alt</svg:title><draw:text-box><text:p>box</text:p></draw:text-box>"
      "</draw:frame>b"): "a\nbox\nb",
    f"<text:section>\n {p('in')}\n</text:section>": "in",
    "<text:table-of-content><text:table-of-content-source><text:index-title-template>No"
    "</text:index-title-template></text:table-of-content-source><text:index-body>" + p("I A")
    + "</text:index-body></text:table-of-content>": "I A",
    # Tables
    "<table:table><table:table-header-rows><table:table-row>" + cell(p("Opera")) + cell(p("Year"))
    + "</table:table-row></table:table-header-rows><table:table-row>" + cell(items(p("x"), p("y")))
    + "<table:covered-table-cell/>" + cell(p("1735")) + "</table:table-row></table:table>": (
        "Opera | Year\n1. x 2. y | 1735"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "text"), TEXTS.items(), ids=TEXTS.values())
def test_texts_are_read_as_they_are_seen(tmp_path: Path, body: str, text: str) -> None:
    assert document_of(opened(tmp_path / "a.odt", body)).text == text


SHEETS = {
    cell(p("a"), 'table:number-columns-repeated="3"') + cell(p("")) + cell(p("b")): (
        "a | a | a | b"
    ),
    cell("", 'table:number-columns-repeated="16384"') + cell(p("x")): "x",
    cell(p("a") + p("b")) + cell(p("47.5 %"), 'office:value="0.475"'): "a b | 47.5 %",
    cell("", 'office:value-type="float" office:value="3"') + cell("", 'office:date-value="2020"'): (
        "3 | 2020"
    ),
    cell(f"<office:annotation><dc:creator>Ann</dc:creator>{p('Ask')}{p('again')}"
         f"</office:annotation>{p('5')}") + "<table:covered-table-cell><text:p>no</text:p>"
    "</table:covered-table-cell>": "5 (Ask again)",
    cell(p("\uf0fc"), 'table:style-name="ce"') + cell(p(f"10{span('6', 'Up')} m")): "✓ | 10⁶ m",
}  # fmt: skip


@pytest.mark.parametrize(("cells", "text"), SHEETS.items(), ids=SHEETS.values())
def test_cells_are_read_as_they_are_seen(tmp_path: Path, cells: str, text: str) -> None:
    empty = '<table:table-row table:number-rows-repeated="1048570"/>'
    table = f'<table:table table:name="S">{empty}<table:table-row>{cells}</table:table-row>{empty}'
    copy = '<table:table table:name="T"><table:table-source/>' + rows(cell(p("no")))[13:]
    read = document_of(opened(tmp_path / "a.ods", f"{table}</table:table>{copy}"))
    assert read.text == f"[sheet S]\n{text}"
    assert not read.unread


def test_rows_and_cells_are_repeated_within_a_bound_which_is_told(tmp_path: Path) -> None:
    table = '<table:table table:name="S"><table:table-row table:number-rows-repeated="{}">{}'
    end = "</table:table-row></table:table>"
    cells = cell(p("ab"), 'table:number-columns-repeated="2"')
    read = document_of(opened(tmp_path / "a.ods", f"{table.format(3, cells)}{end}"))
    assert read.text == "[sheet S]\nab | ab\nab | ab\nab | ab"
    cells = cell(p("a" * 70_000), 'table:number-columns-repeated="999999999"') + cell(p("b"))
    read = document_of(opened(tmp_path / "a.ods", f"{table.format(999999999, cells)}{end}"))
    assert read.text == f"[sheet S]\n{'a' * 70_000} | b"
    assert read.unread == {"cells and rows repeated too often": 2}


def test_slides_have_their_tables_and_notes_and_no_bullets(tmp_path: Path) -> None:
    box = "<draw:frame {}><draw:text-box>{}</draw:text-box></draw:frame>"
    notes = "<presentation:notes>{}</presentation:notes>".format(
        box.format('presentation:class="notes"', p("Say") + p("this."))
        + box.format('presentation:class="page-number"', p("1"))
    )
    pages = (
        box.format('presentation:class="title"', p("Operas"))
        + box.format("", items(p("Griselda"), p("Orlando"), about='text:style-name="B"'))
        + f"<draw:g><draw:custom-shape>{p('In  a shape')}</draw:custom-shape></draw:g>{notes}",
        f"<draw:frame>{rows(cell(p('Opera')), cell(p('Year')))}</draw:frame>",
    )
    read = document_of(
        opened(tmp_path / "a.odp", "".join(f"<draw:page>{page}</draw:page>" for page in pages))
    )
    assert read.title == "Operas"
    assert read.text == (
        "[slide 1]\nOperas\nGriselda\nOrlando\nIn a shape\nNotes: Say\nthis.\n\n"
        "[slide 2]\nOpera | Year"
    )
    assert [unit.name for unit in read.outline] == ["slide 1", "slide 2"]


def test_formulas_are_read_and_other_objects_are_counted(tmp_path: Path) -> None:
    frame = '<draw:frame><draw:object xlink:href="{}"/></draw:frame>'
    body = p(f"is {frame.format('./Object 1')} or {frame.format('F-2/')}{frame.format('../gone')}.")
    math = (
        '<math:math xmlns:math="http://www.w3.org/1998/Math/MathML"><math:semantics><math:mfrac>'
        "<math:mn>1</math:mn><math:mn>2</math:mn></math:mfrac><math:annotation>{1 over 2}"
        "</math:annotation></math:semantics></math:math>"
    )
    chart = f"<office:document-content {SPACES}/>"
    path = opened(
        tmp_path / "a.odt", body, ("Object 1/content.xml", math), ("F-2/content.xml", chart)
    )
    read = document_of(path)
    assert read.text == "is 1/2 or ."
    assert read.unread == {"embedded documents": 1}


def test_the_title_is_that_of_the_properties_or_the_first_title_or_heading(tmp_path: Path) -> None:
    path = opened(tmp_path / "a.odt", heading("First", 1) + p("Raised", "Raised"))
    assert document_of(path).title == "First"
    named = '<style:style style:name="Title" style:family="paragraph"/>'
    styles = f"<office:styles {SPACES}>{named}</office:styles>"
    assert document_of(with_member(path, "styles.xml", styles)).title == "Raised"
    meta = f"<office:meta {SPACES}><dc:title>The Red Priest</dc:title></office:meta>"
    assert document_of(with_member(path, "meta.xml", meta)).title == "The Red Priest"


def test_a_file_with_a_password_is_refused(tmp_path: Path) -> None:
    manifest = "<m:manifest><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>"
    path = opened(tmp_path / "a.odt", p("x"), ("META-INF/manifest.xml", manifest))
    assert "encrypted" in refusal_of(with_member(path, "content.xml", b"\x8f\x00")).what


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("lists_of_libreoffice.odt", "lists_of_libreoffice.docx"),
        ("cells_of_libreoffice.ods", "cells_of_libreoffice.xlsx"),
    ],
)
def test_what_libreoffice_saves_in_both_formats_is_read_alike(name: str, other: str) -> None:
    mine, office = document_of(FILES / name), document_of(FILES / other)
    assert (mine.title, mine.text, mine.outline) == (office.title, office.text, office.outline)


def test_a_deck_that_libreoffice_has_saved_is_read() -> None:
    read = document_of(FILES / "deck_of_libreoffice.odp")
    assert read.title == "Operas"
    assert read.text == (
        "[slide 1]\nOperas\nGriselda\nOrlando\nFarnace\nNotes: Play the overture.\nThen stop.\n\n"
        "[slide 2]\nOpera | Year\nGriselda | 1735\nIn a group²"
    )
