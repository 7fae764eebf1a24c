"""The outline of each type of file, and its contract for any input."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.corpus import MAX_NAME_CHARACTERS, MAX_OUTLINE_DEPTH, Outline
from index_jobs.sources.converters import code, rst
from index_jobs.sources.converters.html import page_of
from index_jobs.sources.converters.outline import Part, outline_of
from index_jobs.sources.converters.registry import ConvertedDocument
from index_jobs.sources.converters.text import convert, markdown
from index_jobs.sources.lines.files import Fields
from tests.support.converted import archive, document_of, written
from tests.support.odd_files import FOLDER


def shown(text: str, outline: Outline) -> str:
    """Return a line for each unit, indented by its depth: kind, name, first and last line."""
    lines = text.split("\n")
    ends: list[int] = []
    rows: list[str] = []
    for unit in outline:
        while ends and ends[-1] <= unit.first:
            ends.pop()
        name = f" {unit.name}" if unit.name else ""
        place = f"{lines[unit.first].strip()} ~ {lines[unit.end - 1].strip()}"
        rows.append(f"{'  ' * len(ends)}{unit.kind}{name}: {place}")
        ends.append(unit.end)
    return "\n".join(rows)


def check(text: str, outline: Outline) -> None:
    """Check the contract of an outline."""
    lines = text.split("\n")
    open_ends: list[int] = []
    assert list(outline) == sorted(outline, key=lambda unit: unit.first)
    for unit in outline:
        assert 0 <= unit.first < unit.end <= len(lines)
        assert lines[unit.first].strip()
        assert lines[unit.end - 1].strip()
        assert unit.name == " ".join(unit.name.split())
        assert len(unit.name) <= MAX_NAME_CHARACTERS
        while open_ends and open_ends[-1] <= unit.first:
            open_ends.pop()
        assert not open_ends or unit.end <= open_ends[-1]
        open_ends.append(unit.end)
        assert len(open_ends) <= MAX_OUTLINE_DEPTH
    assert all(
        unit.kind != "index" or following.first >= unit.end for unit, following in pairwise(outline)
    )


def text_file(tmp_path: Path, name: str, text: str) -> ConvertedDocument:
    """Return what the converter of plain text reads."""
    (document,) = convert(written(tmp_path / name, text), name, Fields())
    assert isinstance(document, ConvertedDocument)
    return document


MANUAL = """<title>20.5. Write Ahead Log</title><body>
<div class="navheader"><table><tr><th>20.5. Write Ahead Log</th></tr></table><hr></div>
<h2>20.5. Write Ahead Log</h2>
<div class="toc"><dl><dt><a href="#x">20.5.1. Settings</a></dt></dl></div>
<h3>20.5.1. Settings</h3>
<dl><dt><code>wal_level</code> (<code>enum</code>)<a class="indexterm"></a></dt>
<dd><p>It says how much.</p><dl><dt>minimal</dt><dd>Little.</dd></dl>
<table><tr><th>value</th><th>keeps</th></tr><tr><td>replica</td><td>more</td></tr></table></dd>
<dt>-a</dt><dt>--all</dt><dd><div class="note"><h3>Note</h3><p>Be careful.</p></div></dd></dl>
<h3>20.5.2. Archiving</h3><ul><li>One<pre>
    x = 1

    y = 2
</pre></li></ul>
<div class="navfooter">Prev | Home</div>"""

MANUAL_OUTLINE = """\
section 20.5. Write Ahead Log: ## 20.5. Write Ahead Log ~ y = 2
  section 20.5.1. Settings: ### 20.5.1. Settings ~ Be careful.
    entry wal_level (enum): wal_level (enum) ~ replica | more
      entry minimal: minimal ~ Little.
      entry replica: replica | more ~ replica | more
    entry -a, --all: -a ~ Be careful.
      entry: ### Note ~ Be careful.
  section 20.5.2. Archiving: ### 20.5.2. Archiving ~ y = 2
    entry: - One ~ y = 2
      block: x = 1 ~ y = 2"""


def test_a_page_has_sections_terms_items_rows_notes_and_blocks() -> None:
    page = page_of(MANUAL)
    assert shown(page.text, page.outline) == MANUAL_OUTLINE
    assert page.unread == {"navigation left out of pages": 2}
    assert "Prev" not in page.text
    assert "\n    x = 1\n\n    y = 2" in page.text
    assert (page.title, page.text.split("\n")[0]) == (
        "20.5. Write Ahead Log",
        "## 20.5. Write Ahead Log",
    )


def test_a_page_that_begins_with_code_keeps_its_indentation() -> None:
    page = page_of("<pre>\n\n    x\n  y\n</pre>z")
    assert page.text == "    x\n  y\n\n\nz"
    assert shown(page.text, page.outline) == "block: x ~ y"


@pytest.mark.parametrize("share", [0, 1])
def test_a_list_of_links_is_an_index(share: int) -> None:
    items = "".join(
        f"<li><a href=x>abs() {n}</a>{', a long description' * share}" for n in range(10)
    )
    page = page_of(f"<h1>Index</h1><ul>{items}</ul>")
    kinds = [unit.kind for unit in page.outline]
    assert kinds == (["section", "index"] if not share else ["section", *["entry"] * 10])


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("os — Interfaces — Python 3.11 documentation", "os — Interfaces", "os — Interfaces"),
        ("Notes on x", "Notes", "Notes on x"),
        ("Site | Page", "Page", "Site | Page"),
        ("Page", "Page", "Page"),
    ],
)
def test_the_title_of_a_page_is_without_its_site(title: str, heading: str, expected: str) -> None:
    link = '<a class="headerlink" href="#x">¶</a>'
    page = page_of(f"<title>{title}</title><h1>{heading}{link}</h1>text")
    assert (page.title, page.text) == (expected, f"# {heading}\n\ntext")


@pytest.mark.parametrize(
    "furniture",
    [
        '<div class="sphinxsidebar">no</div>',
        '<div class="related" role="navigation">no</div>',
        '<a class="md-content__button md-icon" href="x">Edit this page</a>',
        '<div class="theme-doc-breadcrumbs">no</div>',
        '<div class="sub-nav">no</div>',
        '<table><tr><td class="head-ltitle">LS(1)</td></tr></table>',
        '<div role="contentinfo">no</div>',
        '<header role="banner">no</header>',
        '<form role="search">no</form>',
    ],
)
def test_the_navigation_of_a_manual_is_left_out_and_counted(furniture: str) -> None:
    page = page_of(f"<p>seen</p>{furniture}<p>too</p>")
    assert page.text == "seen\n\ntoo"
    assert page.unread == {"navigation left out of pages": 1}


def test_the_header_of_an_article_stays() -> None:
    assert page_of("<article><header role=banner>By A</header>x</article>").text == "By A\n\nx"
    assert page_of("<body class=footer><main class=navbar>x</main>").text == "x"


MARKDOWN = """---
title: Guide
---
# Start {#start}

- one
  - two

| name | use |
|---|---|
| `-a` | all |

## Code

```py
# no heading
```

Under
-----

    x = 1

> # quoted
"""


def test_markdown_has_sections_items_rows_and_blocks(tmp_path: Path) -> None:
    for name in ("a.md", "b.MARKDOWN"):
        document = text_file(tmp_path, name, MARKDOWN)
        assert document.title == "Guide"
        assert shown(document.text, document.outline) == (
            "section Start: # Start {#start} ~ > # quoted\n"
            "  entry: - one ~ - two\n"
            "    entry: - two ~ - two\n"
            "  entry -a: | `-a` | all | ~ | `-a` | all |\n"
            "  section Code: ## Code ~ ```\n"
            "    block: ```py ~ ```\n"
            "  section Under: Under ~ > # quoted\n"
            "    block: x = 1 ~ x = 1"
        )


def test_a_sign_of_number_is_a_heading_in_markdown_only(tmp_path: Path) -> None:
    for name in ("a.txt", "a.py", "a.yaml", "Makefile"):
        document = text_file(tmp_path, name, "# Copyright\n\n# Licence\nx: 1\n")
        assert (document.title, document.outline) == ("", ())


RST = """\
.. comment
   with .. function:: nothing(here)

=======
 Title
=======

Using :mod:`os`
===============

.. function:: run(args, *, check=False)

   Runs it::

      >>> run("ls")

   .. method:: nested()
      :noindex:

.. versionadded:: 3.5
   Something.

.. note::
   Careful.

term
   Its definition.

* an item
  goes on

.. code-block:: python
   :linenos:

   x = 1

Deeper
------

>>> 1
1

Other
=====
"""

RST_OUTLINE = """\
section Title: ======= ~ =====
  section Using os: Using :mod:`os` ~ 1
    entry run(args, *, check=False): .. function:: run(args, *, check=False) ~ :noindex:
      block: >>> run("ls") ~ >>> run("ls")
      entry nested(): .. method:: nested() ~ :noindex:
    entry: .. note:: ~ Careful.
    entry term: term ~ Its definition.
    entry: * an item ~ goes on
    block: .. code-block:: python ~ x = 1
    section Deeper: Deeper ~ 1
      block: >>> 1 ~ 1
  section Other: Other ~ ====="""


def test_restructured_text_has_sections_directives_terms_and_blocks(tmp_path: Path) -> None:
    for document in (
        document_of(written(tmp_path / "a.rst", RST)),
        text_file(tmp_path, "b.rst.txt", RST),
    ):
        assert document.title == "Title"
        assert shown(document.text, document.outline) == RST_OUTLINE


PYTHON = '''# Copyright

import os


# What trains.
@decorated(
    "x",
)
class Trainer(Base):
    """Trains.

def not_this():
    """

    def __init__(
        self,
    ) -> None:
        x = """
def nor_this(): pass
"""

    @property
    async def train(self):
        def inner():
            return 1

        return inner  # it

# A note on nothing.

def last(): pass
'''


def test_python_has_classes_and_functions_with_what_stands_above_them(tmp_path: Path) -> None:
    document = text_file(tmp_path, "a.py", PYTHON)
    assert shown(document.text, document.outline) == (
        "section class Trainer: # What trains. ~ return inner  # it\n"
        '  entry def __init__: def __init__( ~ """\n'
        "  entry def train: @property ~ return inner  # it\n"
        "    entry def inner: def inner(): ~ return 1\n"
        "entry def last: def last(): pass ~ def last(): pass"
    )


CODE = {
    "c": (
        "#include <x.h>\nint twice(int a);\n\n/* Adds. */\nstatic int\nadd(int a,\n    int b)\n{\n"
        "#if X\n    if (a) {\n    }\n#endif\nout:\n    return a;\n}\n\n"
        "struct pair {\n    int a;\n};\n",
        "entry add(): /* Adds. */ ~ }\nsection struct pair: struct pair { ~ };",
    ),
    "cpp": (
        "namespace n {\nint f();\nclass A : public B\n{\npublic:\n    A() : x(1) {}\n"
        "    int f() const;\n};\n}\nA::~A()\n{\n}\n",
        "section class A: class A : public B ~ };\n"
        "  entry A(): A() : x(1) {} ~ A() : x(1) {}\nentry A::~A(): A::~A() ~ }",
    ),
    "ts": (
        "/** Finds. */\nexport async function find(a: {\n  b: string\n}): Promise<X> {\n"
        "  if (a) {\n  }\n}\nexport class Store {\n  private getUserById(id = 1) {\n"
        "    const t = `\n}\n`\n  }\n}\nconst add = (a, b) => {\n}\n",
        "entry function find: /** Finds. */ ~ }\nsection class Store: export class Store { ~ }\n"
        "  entry getUserById(): private getUserById(id = 1) { ~ }\n"
        "entry add(): const add = (a, b) => { ~ }",
    ),
    "java": (
        "/** A. */\n@Deprecated\npublic final class A\n{\n    List<B> x = new LinkedList<>();\n"
        "    @Override\n    public int size()\n    {\n        return 1;\n    }\n"
        "    abstract int no(int a);\n}\n",
        "section class A: /** A. */ ~ }\n  entry size(): @Override ~ }\n"
        "  entry no(): abstract int no(int a); ~ abstract int no(int a);",
    ),
    "go": (
        "// Serve serves.\nfunc (s *Server) Serve() error {\nagain:\n\treturn nil\n}\n\n"
        "type A struct {\n}\n",
        "entry func (s *Server) Serve: // Serve serves. ~ }\nsection type A: type A struct { ~ }",
    ),
    "rs": (
        "#[derive(Debug)]\npub struct P<'a> {\n    x: &'a str,\n}\nimpl<'a> Show for P<'a> {\n"
        "    fn show<T>(&self) -> T\n    where\n        T: X,\n    {\n        '{'\n    }\n}\n",
        "section struct P: #[derive(Debug)] ~ }\n"
        "section impl Show for P<'a>: impl<'a> Show for P<'a> { ~ }\n"
        "  entry fn show: fn show<T>(&self) -> T ~ }",
    ),
    "sql": (
        "-- Adds.\nCREATE OR REPLACE FUNCTION add(int) RETURNS int AS $$\nBEGIN;\n$$ "
        "LANGUAGE sql;\ncreate index i on t (a);\nSELECT 1;\n",
        "entry FUNCTION add: -- Adds. ~ $$ LANGUAGE sql;\n"
        "entry index i: create index i on t (a); ~ create index i on t (a);",
    ),
    "sh": ("# Runs.\nrun() {\n  echo '}'\n}\nrun\n", "entry run(): # Runs. ~ }"),
    "rb": (
        "module M\n  def a?\n    1\n  end\nend\n",
        "section module M: module M ~ end\n  entry def a?: def a? ~ end",
    ),
}


@pytest.mark.parametrize("ending", CODE)
def test_other_languages_have_definitions(ending: str) -> None:
    text, expected = CODE[ending]
    assert shown(text, code.outline(text, ending)) == expected


def test_books_have_chapters(tmp_path: Path) -> None:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
        + "".join(
            f'<item id="{n}" href="{n}.xhtml" media-type="application/xhtml+xml"/>' for n in "ab"
        )
        + '</manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="x.opf"/></rootfiles></container>'
    book = document_of(
        archive(
            tmp_path / "a.epub",
            {
                "META-INF/container.xml": container,
                "x.opf": package,
                "a.xhtml": "<html><body><h1>One</h1><p>x</p><h2>More</h2><p>y</p></body></html>",
                "b.xhtml": "<html><head><title>Two</title></head><body><p>z</p></body></html>",
            },
        )
    )
    assert shown(book.text, book.outline) == (
        "section One: [chapter 1] ~ y\n  section More: ## More ~ y\nsection Two: [chapter 2] ~ z"
    )


def test_office_files_have_sections_items_and_rows(tmp_path: Path) -> None:
    docx, pptx, openpyxl = map(pytest.importorskip, ("docx", "pptx", "openpyxl"))
    word = docx.Document()
    for text, style in (
        ("Guide", "Heading 1"),
        ("one", "List Bullet"),
        ("two", "List Bullet"),
        ("Then", "Heading 2"),
    ):
        word.add_paragraph(text, style)
    table = word.add_table(2, 2)
    for number, text in enumerate(("name", "use", "a", "all")):
        table.cell(number // 2, number % 2).text = text
    word.add_paragraph("End", "Heading 1")
    word.save(str(tmp_path / "a.docx"))
    document = document_of(tmp_path / "a.docx")
    assert shown(document.text, document.outline) == (
        "section Guide: # Guide ~ a | all\n  entry: - one ~ - one\n  entry: - two ~ - two\n"
        "  section Then: ## Then ~ a | all\n    entry a: a | all ~ a | all\n"
        "section End: # End ~ # End"
    )
    deck = pptx.Presentation()
    for text in ("First", "Second"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = text
    deck.save(str(tmp_path / "a.pptx"))
    document = document_of(tmp_path / "a.pptx")
    assert shown(document.text, document.outline) == (
        "section slide 1: [slide 1] ~ First\nsection slide 2: [slide 2] ~ Second"
    )
    workbook = openpyxl.Workbook()
    workbook.active.append(["a"])
    workbook.create_sheet("Stock").append([1])
    workbook.save(tmp_path / "a.xlsx")
    document = document_of(tmp_path / "a.xlsx")
    assert shown(document.text, document.outline) == (
        "section Sheet: [sheet Sheet] ~ a\nsection Stock: [sheet Stock] ~ 1"
    )


def test_a_long_table_is_a_section_named_by_its_titles(tmp_path: Path) -> None:
    rows = [("Title", "Place"), *((f"Opera {number}", "Venice") for number in range(12))]
    workbook: Any = openpyxl.Workbook()
    document: Any = docx.Document()
    table = document.add_table(0, 2)
    for row in rows:
        workbook.active.append(row)
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    workbook.save(tmp_path / "a.xlsx")
    document.save(str(tmp_path / "a.docx"))
    bars = ["| " + " | ".join(row) + " |" for row in rows]
    written(tmp_path / "a.md", "\n".join([bars[0], "|--|--|", *bars[1:]]))
    cells = ("".join(f"<td>{cell}" for cell in row) for row in rows)
    markup = "<table><tr>" + "<tr>".join(cells).replace("<td>", "<th>", 2)
    written(tmp_path / "a.html", markup)
    for name in ("a.xlsx", "a.docx", "a.md", "a.html"):
        read = document_of(tmp_path / name)
        lines = read.text.split("\n")
        (unit,) = (unit for unit in read.outline if unit.name == "Title | Place")
        assert unit.kind == "section"
        assert "Title" in lines[unit.first]
        assert "Opera 11" in lines[unit.end - 1]
    short = page_of("<table><tr><th>Title</th><tr><td>Orlando</table>")
    assert [unit.kind for unit in short.outline] == ["entry"]


def test_odd_files_have_an_outline() -> None:
    outlines = {
        path.name: shown(document.text, document.outline)
        for path in FOLDER.iterdir()
        if path.suffix in (".md", ".html", ".docx", ".xlsx", ".epub", ".pdf")
        for document in [document_of(path)]
        if document.outline
    }
    assert outlines == {
        "colours.md": "section Log: # Log ~ ```\n  block: ``` ~ ```",
        "fences.md": "block: ```` ~ ````\nblock: # no ~ # no\nsection Yes: Yes ~ ===",
        "questions.html": "section How long?: ## How long? ~ A week¹.",
        "rich-and-phonetic.xlsx": "section Stock: [sheet Stock] ~ 東京 | 2 | #DIV/0! | TRUE",
        "spaces in names.epub": "section First: [chapter 1] ~ One.\nsection: [chapter 2] ~ Two.",
        "toml.md": "section Other: # Other ~ Text.",
    }


PARTS = st.builds(
    Part,
    st.integers(-1, 12),
    st.integers(0, 14),
    st.sampled_from(("section", "entry", "block")),
    st.text(max_size=200),
    st.integers(0, 3),
)


@given(st.text("a \n", max_size=14), st.lists(PARTS, max_size=30))
def test_any_parts_make_an_outline(text: str, parts: list[Part]) -> None:
    check(text, outline_of(text, parts))


TAGS = "dl dt dd ul li table tr td th h1 h2 pre section div aside a br button".split()  # noqa: SIM905
MARKUP = st.lists(
    st.one_of(
        st.sampled_from([f"<{slash}{tag}>" for tag in TAGS for slash in ("", "/")]),
        st.sampled_from(
            ["<div class=note>", "<div class=indexdiv>", "<a href=x>", "x", "\n", " y "]
        ),
    ),
    max_size=60,
).map("".join)


@given(MARKUP)
def test_any_page_has_an_outline(markup: str) -> None:
    page = page_of(markup)
    check(page.text, page.outline)


BEGINNINGS = (
    *("# A", "- a", "1. b", "===", "---", "~~~", "A title", ".. note:: x", ".. function:: f(x)"),
    *("x::", ".. ", ">>> 1", "```", "> q", "", "| a | b |", "|---|---|", "class A:", "def f():"),
    *("class A {", "int f(int a) {", "}", "end", ");", "@x", "#[x]", "# c", "// c", "/*", "*/"),
    *("'''", '"', "`", "func f() {", "impl<T> A {", "create table x (", ";", "f() {", "$$"),
)

LINES = st.lists(
    st.tuples(st.sampled_from(("", "  ", "    ", "\t", "\r")), st.sampled_from(BEGINNINGS)).map(
        "".join
    ),
    max_size=40,
).map("\n".join)


@given(LINES)
def test_any_text_has_an_outline(text: str) -> None:
    check(text, markdown(text)[1])
    check(text, rst.title_and_outline(text)[1])
    for ending in ("py", "c", "java", "ts", "rs", "sql", "rb", "sh"):
        check(text, code.outline(text, ending))


ORG = """#+TITLE: My notes
* TODO [#A] First  :tag:x:
text, - * no heading
  #+BEGIN_SRC sh
* in a block
  #+end_src
** Deeper
*bold* at the beginning
* DONE Last
"""
ASCIIDOC = """= The guide
Ann Smith

== First ==
----
== in a block
----
====
An example.
====
=== Deeper
=no heading
== Last
"""


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.org", ORG, "My notes"),
        ("a.org", ORG.replace("#+TITLE", "#+author"), "First"),
        ("a.adoc", ASCIIDOC, "The guide"),
        ("a.asciidoc", ASCIIDOC.replace("= The guide", ":doctitle: My guide", 1), "My guide"),
    ],
)
def test_headings_of_org_and_asciidoc_are_sections(
    tmp_path: Path, name: str, text: str, title: str
) -> None:
    document = document_of(written(tmp_path / name, text.replace("\n", "\r\n")))
    assert document.title == title
    kinds = [(unit.kind, unit.name) for unit in document.outline if unit.name != title]
    sections = ["First", "", "Deeper", "Last"]
    assert [name for _, name in kinds] == [name for name in sections if name != title]
    assert [kind for kind, name in kinds if not name] == ["block"]
    lines = text.split("\n")
    last = document.outline[-1]
    assert lines[last.first].endswith("Last")
