"""Web pages: the text that a reader sees, its outline, and the title.

The markup is parsed as browsers do it, by lexbor, without scripts and without network access.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arag_search.corpus import MAX_NAME_CHARACTERS, Outline, UnitKind
from index_jobs.sources.converters import raised
from index_jobs.sources.converters.numbering import BULLET, shown_number, whole
from index_jobs.sources.converters.outline import INDEX_LINES, TABLE_LINES, Part, outline_of
from index_jobs.sources.converters.panels import Panels
from index_jobs.sources.converters.registry import ConvertedDocument, whole_file
from index_jobs.sources.encodings import Decoded, decoded
from index_jobs.sources.lines.files import Fields

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_UNSEEN = frozenset(
    """
    head script style template noscript iframe object embed canvas svg audio video map nav select
    datalist rp rtc annotation annotation-xml
    """.split()  # noqa: SIM905
)
"""Elements that are not part of the text: code, controls, pictures, navigation, the sources of
formulas."""

_PARAGRAPHS = frozenset(
    """
    address article aside blockquote body center details dialog dl fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hgroup hr main ol p pre section table ul
    """.split()  # noqa: SIM905
)
"""Elements with a blank line before and after them."""

_NOTE = "(note)"
_INDEX = "(index)"
_LINES = frozenset(
    """
    caption dd div dt legend li option summary tr tbody thead tfoot (note) (index)
    """.split()  # noqa: SIM905
)
"""Elements that begin and end a line. As ``(note)`` and ``(index)``, a note that is set apart and
the index of a book are shown."""

_CELLS = frozenset(("td", "th"))
_BLOCKS = _PARAGRAPHS | _LINES | _CELLS
_HEADING = re.compile(r"h([1-6])")
_SET_APART = frozenset(("button", "label", "output", "textarea"))
"""Elements inside a line with a blank before and after them."""

_DISPLAY = re.compile(
    r"(?:^|;)\s*display\s*:\s*(inline-\w+|block|flex|grid|list-item|table)\b", re.I
)
_ALIGNED = re.compile(r"(?:^|;)\s*vertical-align\s*:\s*(?:super|(sub|-[\d.])|[\d.]*[1-9])", re.I)
_NOT_DISPLAYED = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.I)
_COMMENT = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]{1,40})""", re.I)
_EMPTY_ELEMENT = re.compile(r"<([a-zA-Z][\w:.-]*)(\s[^<>]*)?/>")
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+){1,9}")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905
_NOTES = frozenset(
    "note tip warning caution important danger admonition theme-admonition".split()  # noqa: SIM905
)
_INDEX_CLASS = "indexdiv"
_SIGNS = frozenset(
    """
    headerlink hash-link header-anchor anchor-link doc-anchor linenos linenodiv lineno
    """.split()  # noqa: SIM905
)
"""Classes of links from a heading to itself, and of the numbers of lines."""

_FURNITURE = frozenset(
    """
    navheader navfooter related sphinxsidebar footer rst-footer-buttons wy-nav-side wy-nav-top
    wy-breadcrumbs sidebar-drawer toc-drawer mobile-header md-header md-sidebar md-footer md-tabs
    md-skip md-source md-content__button navbar breadcrumbs breadcrumb theme-doc-breadcrumbs
    pagination-nav theme-doc-footer theme-edit-this-page theme-doc-toc-mobile theme-doc-toc-desktop
    theme-doc-sidebar-container table-of-contents nav-chapters nav-wrapper top-nav topNav sub-nav
    subNav bottomNav skip-nav skipNav legal-copy legalCopy head-ltitle head-vol head-rtitle
    foot-date foot-os foot-left foot-right
    """.split()  # noqa: SIM905
)
"""Classes of what leads to other pages, or stands on each of them: of DocBook, Sphinx and its
themes, MkDocs, Docusaurus, mdBook, Javadoc and mandoc."""

_NAVIGATION = frozenset(("navigation", "contentinfo", "search"))
"""Roles of such elements; another is a banner, which within an article is its header."""

_CONTENT = frozenset(("main", "article"))
_LEFT_OUT = "navigation left out of pages"
_HIDDEN = "hidden elements left out of pages"
_LISTS = frozenset(("ul", "ol", "dl", "table", _INDEX))
_ITEMS: Mapping[str, UnitKind] = {
    "li": "entry",
    "tr": "entry",
    "dt": "entry",
    _NOTE: "entry",
    "pre": "block",
}
_APART = frozenset(("aside", "blockquote", "figure", _NOTE))
"""Elements whose headings are no sections of the page."""

_OUTLINED = _LISTS | _APART | _CELLS | set(_ITEMS) | {"dd", *(f"h{n}" for n in range(1, 7))}
_LIST_STYLE = re.compile(r"(?:^|;)\s*list-style(?:-type)?\s*:\s*([\w-]+)", re.I)
_INDEX_SHARE = 0.8
"""A list of INDEX_LINES, of whose characters at least this share are in links, is an index."""

_PLACES = {
    "msup": ("", raised.RAISED),
    "msub": ("", raised.LOWERED),
    "msubsup": ("", raised.LOWERED, raised.RAISED),
    "munder": ("", raised.LOWERED),
    "mover": ("", raised.RAISED),
    "munderover": ("", raised.LOWERED, raised.RAISED),
    "mfrac": (raised.ABOVE, raised.BELOW),
    "mroot": ("", raised.DEGREE),
}
"""The marks of the parts of formulas, by their place."""

_ACCENTED = ("mover", "munder")
_MARKS = {
    "sup": raised.RAISED,
    "sub": raised.LOWERED,
    "rt": raised.READING,
    "msqrt": raised.ROOT,
    "mroot": raised.ROOT,
}
"""The marks of elements that do not stand on the line."""

_SHAPING = _BLOCKS | _SET_APART | _OUTLINED | set(_MARKS) | {"br", "menu", "math"}
"""Elements that are more than a part of a line."""

_ALIGNED_TAGS = frozenset(("span", "a", "font", "small", "b", "i", "em"))
_ALIGNED_NAMES = {
    **dict.fromkeys(("sup", "super", "superscript", "noteref", "doc-noteref"), "sup"),
    **dict.fromkeys(("sub", "subscript"), "sub"),
}
"""Classes, roles and types of EPUB of such elements."""

_MAX_NAME_PIECES = 500
_QUALIFIED_CHARACTERS = 500
"""Up to which length a term is given its dotted name: time grows with its square."""

_FIRST_BLANK_LINES = re.compile(r"\A\s*\n")
_TITLE_END = re.compile(r"\s*[^\w\s]")
_CHARSET_BYTES = 1 << 12
_SOFT_HYPHEN = "\u00ad"


class Page(NamedTuple):
    """The title, the text and the outline of a web page, and how many elements with navigation were
    left out, as ``unread`` of a ConvertedDocument."""

    title: str
    text: str
    outline: Outline
    unread: Mapping[str, int]


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the page as one document. See Converter."""
    yield document_of(decoded_markup(whole_file(path, where), where))


def document_of(read: Decoded) -> ConvertedDocument:
    """Return a page as a document."""
    page = page_of(read.text)
    unread = {**page.unread, **read.unread}
    return ConvertedDocument("", page.title, page.text, unread=unread, outline=page.outline)


def decoded_markup(data: bytes, where: str, label: str = "") -> Decoded:
    """Decode a page as the label says, as it declares, or as is detected. Raises SourceError."""
    beginning = _COMMENT.sub(b"", data[:_CHARSET_BYTES])
    declared = _XML_ENCODING.match(beginning) or _META_CHARSET.search(beginning)
    return decoded(data, where, label or (declared[1].decode("ascii") if declared else ""))


def page_of(markup: str) -> Page:
    """Return the title and the text of HTML or XHTML.

    The title is ``<title>`` or, if there is none, the first ``<h1>``. If the title begins with this
    ``<h1>``, the name of the site behind it is left out. Headings begin with ``#``, items of lists
    with ``-``, and cells of a row are separated by ``|``. Elements that are hidden or that hold
    navigation, by their tag, class or role, are left out.
    """
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    if markup.lstrip("\ufeff \t\r\n").startswith("<?xml"):
        markup = _EMPTY_ELEMENT.sub(_with_end_tag, markup)
    # lexbor takes UTF-8, which has no lone surrogates.
    data = markup.encode("utf-8", "replace")
    tree = LexborHTMLParser(data, options=LexborDocumentOptions.WO_EVENTS)
    text = _text_below(tree.body) if tree.body is not None else _Text(None)
    title = _words(tree.css_first("head > title"))
    heading = text.first_heading or _words(tree.css_first("h1"))
    if not title or (title.startswith(heading) and _TITLE_END.match(title, len(heading))):
        title = heading or title
    return Page(title, *text.finished(), +text.unread)


def _with_end_tag(element: re.Match[str]) -> str:
    """Return an empty XHTML element as HTML, where ``<a/>`` would be an unclosed ``<a>``."""
    name, attributes = element[1], element[2] or ""
    return element[0] if name.lower() in _VOID else f"<{name}{attributes}></{name}>"


def _words(node: LexborNode | None) -> str:
    return " ".join(node.text().split()) if node is not None else ""


def _text_below(root: LexborNode) -> _Text:
    # Without recursion, because tags may be nested ever so deep.
    text = _Text(root)
    node: LexborNode | None = root
    open_tags: list[str] = []
    while node is not None:
        child = None
        if node.is_text_node:
            text.add(node.text_content or "")
        elif node.is_element_node and (tag := _shown_as(node, text)):
            text.enter(tag, node)
            child = node.first_child
            if child is None:
                text.leave(tag)
            else:
                open_tags.append(tag)
        if child is not None:
            node = child
            continue
        while open_tags and node is not None and node.next is None:
            node = node.parent
            text.leave(open_tags.pop())
        node = node.next if open_tags and node is not None else None
    return text


def _shown_as(node: LexborNode, text: _Text) -> str:
    """Return the tag as which an element is shown, which its style, role or class may change; empty
    if it is not shown."""
    tag = node.tag or ""
    if tag in _UNSEEN:
        text.unread[_LEFT_OUT] += tag == "nav"
        return ""
    attributes = node.attributes
    shown = _shown_by_class(tag, attributes.get("class") or "")
    if shown and attributes.keys() <= {"class"} and tag != "dialog":  # most
        return shown
    style = attributes.get("style")
    is_hidden = (
        "hidden" in attributes
        or (tag == "dialog" and "open" not in attributes)
        or (style and _NOT_DISPLAYED.search(style) is not None)
    )
    if is_hidden or attributes.get("aria-hidden") == "true":
        if not text.panels.opens(node, attributes):
            text.unread[_HIDDEN] += bool(is_hidden and node.text().strip())
            return ""
    elif tag == "button" and attributes.get("type") in ("submit", "reset"):
        return ""
    role = attributes.get("role") or ""
    if tag != "body" and tag not in _CONTENT:
        is_banner = role == "banner" and not text.is_in(_CONTENT)
        if role in _NAVIGATION or is_banner or shown is None:
            text.unread[_LEFT_OUT] += 1
            return ""
    if not shown or shown in (_NOTE, _INDEX):
        return shown or ""
    if role == "heading" and tag not in _CELLS:
        level = attributes.get("aria-level") or ""
        return f"h{level}" if _HEADING.fullmatch(f"h{level}") else "h2"
    if tag in _ALIGNED_TAGS:
        if style and (aligned := _ALIGNED.search(style)):
            return "sub" if aligned[1] else "sup"
        for name in (attributes.get("epub:type"), role):
            if name in _ALIGNED_NAMES:
                return _ALIGNED_NAMES[name]
    if shown == tag and style and (display := _DISPLAY.search(style)) and tag not in _BLOCKS:
        return "label" if display[1].lower().startswith("inline") else "div"
    return shown


@lru_cache(1 << 12)
def _shown_by_class(tag: str, names: str) -> str | None:
    """Return the tag as which an element with these classes is shown; empty if it is not shown, and
    None if it holds navigation."""
    classes = names.split()
    if tag != "body" and tag not in _CONTENT and not _FURNITURE.isdisjoint(classes):
        return None
    if not _SIGNS.isdisjoint(classes):
        return ""
    if tag in ("div", "aside") and not _NOTES.isdisjoint(classes):
        return _NOTE
    if tag == "div" and _INDEX_CLASS in classes:
        return _INDEX
    if tag in _ALIGNED_TAGS:
        return next((_ALIGNED_NAMES[name] for name in classes if name in _ALIGNED_NAMES), tag)
    return tag


def _qualified(term: str, id: str) -> str:
    """Return a term with the dotted name that its id gives it, as Sphinx does: below a class, a
    method stands without it."""
    if not _DOTTED_NAME.fullmatch(id) or len(term) > _QUALIFIED_CHARACTERS:
        return term
    last = re.escape(id.rpartition(".")[2])
    return re.sub(rf"(?<!\w)(?:\w+\.)*{last}(?!\w)", id, term, count=1)


class _Frame:
    """An element that may be a unit, while it is open. It keeps its first piece of text, the place
    of its part, and what the page held when it began."""

    def __init__(self, tag: str, text: _Text) -> None:
        self.tag = tag
        self.piece = len(text.texts)
        self.place = len(text.parts)
        self.headings = text.headings
        self.characters = text.characters
        self.linked = text.linked
        self.lines = text.lines
        self.name = ""
        self.id = ""
        self.name_piece = self.piece
        self.is_defined = False  # whether a term has its definition, or a row more than titles


class _List:
    """A list while it is open: the form and the next number of its items."""

    def __init__(self, node: LexborNode) -> None:
        attributes = node.attributes
        styled = _LIST_STYLE.search(attributes.get("style") or "")
        self._form = styled[1].lower() if styled else attributes.get("type") or ""
        self._is_ordered = node.tag == "ol" and self._form != "none"
        self._step = -1 if "reversed" in attributes else 1
        items = sum(item.tag == "li" for item in node.iter()) if self._step < 0 else 1
        self._next = whole(attributes.get("start"), items)

    def label(self, item: LexborNode) -> str:
        """Return what stands before the next item."""
        if not self._is_ordered:
            return BULLET
        number = whole(item.attributes.get("value"), self._next)
        self._next = number + self._step
        return f"{shown_number(number, self._form)}."


class _Text:
    """The text of a page, and its parts, while its elements are walked.

    Parts count pieces of text, in place of lines, until the whole text is known.
    """

    def __init__(self, root: LexborNode | None) -> None:
        self._gaps: list[str] = []
        self.texts: list[str] = []
        """The pieces of text. Before each comes its gap: line ends, bars and marks."""

        self._line_ends = 0  # how many must come before the next text
        self._blank = False  # whether a blank must come before the next text
        self._mark = ""  # what the next text begins with, such as "- "
        self._cells = 0  # the cells of the current row so far
        self._bars = 0  # the bars between cells that are still to be written
        self._row_is_empty = True
        self._lists: list[_List] = []
        self._nested = defaultdict[str, int](int)  # how many elements are open, by their tags
        self.parts: list[Part | None] = []
        """The parts in the order in which they begin; None for a part that is not a unit."""

        self._frames: list[_Frame] = []
        self.lines = 0
        """The number of line ends so far."""

        self.headings = 0
        self.characters = 0
        self.linked = 0
        """The number of characters so far that are in links."""

        self.first_heading = ""
        """The text of the first ``<h1>``."""

        self.unread: Counter[str] = Counter()
        """The numbers of elements that were left out, by their kinds."""

        self.panels = Panels(root)

        self._opening = ""  # the marks that the next text begins with
        self._marks: list[str] = []  # those of each open element that has some, or is in a formula
        self._places: dict[int, str] = {}
        """The marks of parts of the formulas that are open, by their nodes."""

    def enter(self, tag: str, node: LexborNode) -> None:
        """Begin an element."""
        self._nested[tag] += 1
        if tag not in _SHAPING and not self._nested["math"]:
            return
        if tag in _MARKS or self._nested["math"]:
            place = self._places.pop(node.mem_id, "")
            self._marks.append(place + _MARKS.get(tag, ""))
            self._opening += self._marks[-1]
            self._blank &= place in ("", raised.ABOVE)
            for mark, child in zip(_PLACES.get(tag, ()), node.iter(), strict=False):
                if not (child.tag == "mo" and tag in _ACCENTED):
                    self._places[child.mem_id] = mark
        if tag == "br":
            self._break(min(self._line_ends + 1, 2))
        elif tag in _CELLS:
            self._bars += self._cells > 0
            self._cells += 1
            self._blank = True
        self._boundary(tag)
        if tag == "li":
            self._mark = f"{self._lists[-1].label(node) if self._lists else BULLET} "
        elif tag in ("ol", "ul", "menu"):
            self._lists.append(_List(node))
        elif heading := _HEADING.fullmatch(tag):
            self._mark = "#" * int(heading[1]) + " "
        if tag in _OUTLINED:
            self._open(tag)
        if tag == "dt":
            self._frames[-1].id = node.attributes.get("id") or ""

    def leave(self, tag: str) -> None:
        """End an element."""
        if tag not in _SHAPING and not self._nested["math"]:
            self._nested[tag] -= 1
            return
        if tag in _MARKS or self._nested["math"]:
            marks = self._marks.pop()
            if self._opening:  # nothing was added
                self._opening = self._opening.removesuffix(marks)
            elif marks:
                self.texts[-1] += raised.END * len(marks)
        if tag in _CELLS:
            self._leave_cell()
        elif tag == "dt":
            self._leave_term()
        elif tag in _OUTLINED and tag != "dd":
            self._close(tag)
        self._boundary(tag)
        if tag in ("ol", "ul", "menu"):
            self._lists.pop()
        self._nested[tag] -= 1

    def is_in(self, tags: Iterable[str]) -> bool:
        """Return whether an element with one of these tags is open."""
        return any(self._nested[tag] for tag in tags)

    def add(self, text: str) -> None:
        """Add the text of a text node; white space is collapsed outside of ``<pre>``."""
        if _SOFT_HYPHEN in text:
            text = text.replace(_SOFT_HYPHEN, "")
        if self._nested["pre"]:
            if text:
                self._put(text, text.count("\n"))
            return
        words = text.split()
        if not words:
            self._blank = self._blank or bool(text)
            return
        self._blank = self._blank or text[0].isspace()
        self._put(" ".join(words), 0)
        self._blank = text[-1].isspace()

    def finished(self) -> tuple[str, Outline]:
        """Return the whole text and its outline."""
        while self._frames:
            self._close(self._frames[-1].tag)
        pieces = [piece for pair in zip(self._gaps, self.texts, strict=True) for piece in pair]
        text = raised.written("".join(pieces)).rstrip()
        stripped = _FIRST_BLANK_LINES.sub("", text)
        before = text.count("\n") - stripped.count("\n")
        # The line ends before each piece and its gap: lines[2 * n + 1] is the line of the n-th.
        lines = list(accumulate((piece.count("\n") for piece in pieces), initial=-before))
        parts = (
            part._replace(first=max(lines[2 * part.first + 1], 0), end=lines[2 * part.end] + 1)
            for part in self.parts
            if part is not None and part.first < part.end
        )
        return stripped, outline_of(stripped, parts)

    def _open(self, tag: str) -> None:
        top = self._frames[-1] if self._frames else None
        if tag in _CELLS:
            if top and top.tag == "tr":
                top.is_defined |= tag == "td"
        elif tag == "dd":
            if top and top.tag == "dt":
                top.is_defined = True
        elif tag == "dt" and top and top.tag == "dt" and not top.is_defined:
            top.name_piece = len(self.texts)
        else:
            if tag == "dt" and top and top.tag == "dt":
                self._close("dt")
            self._frames.append(_Frame(tag, self))
            self.parts.append(None)

    def _leave_term(self) -> None:
        """End a term, whose unit goes on with its definition."""
        term = self._frames[-1]
        words = _qualified(self._words_from(term.name_piece), term.id)
        if len(term.name) <= MAX_NAME_CHARACTERS:
            term.name = f"{term.name}, {words}" if term.name else words

    def _leave_cell(self) -> None:
        """End a cell; the first line of the first one with text is the name of its row."""
        row = self._frames[-1] if self._frames else None
        if row and row.tag == "tr" and not row.name:
            row.name = self._words_from(row.piece).partition("\n")[0]

    def _words_from(self, piece: int) -> str:
        """Return the text from this piece on, without what stands before it, at most as much as a
        name or title needs."""
        end = piece + _MAX_NAME_PIECES
        gaps = ("", *self._gaps[piece + 1 : end])
        return raised.written("".join(map("".join, zip(gaps, self.texts[piece:end], strict=False))))

    def _close(self, tag: str) -> None:
        """End an element that was opened, and make it a unit if it is one."""
        frame = self._frames.pop()
        while frame.tag != tag:  # a term outside of a list
            self._add_part(frame)
            frame = self._frames.pop()
        self._add_part(frame)

    def _add_part(self, frame: _Frame) -> None:
        tag = frame.tag
        kind: UnitKind | None = _ITEMS.get(tag)
        level = 0
        if tag in _LISTS:
            lines = self.lines - frame.lines + 1
            linked = self.linked - frame.linked
            share = _INDEX_SHARE * (self.characters - frame.characters)
            if lines < INDEX_LINES:
                return
            if tag == _INDEX or linked >= share:
                kind = "index"
                del self.parts[frame.place + 1 :]
            elif frame.name and self.headings == frame.headings and lines >= TABLE_LINES:
                kind = "section"
        elif heading := _HEADING.fullmatch(tag):
            frame.name = self._words_from(frame.piece)
            level = int(heading[1])
            if level == 1:
                self.first_heading = self.first_heading or " ".join(frame.name.split())
            if self.is_in(_APART) or not frame.name:
                return
            kind = "section"
            self.headings += 1
        elif tag in ("li", "tr") and self.headings > frame.headings:  # it lays out the page
            return
        elif tag == "tr" and not frame.is_defined and self._frames[-1:]:
            top = self._frames[-1]
            top.name = top.name or self._words_from(frame.piece) * (top.tag == "table")
        if kind and (tag not in ("dt", "tr") or frame.is_defined):
            end = len(self.texts)
            self.parts[frame.place] = Part(frame.piece, end, kind, frame.name, level)

    def _boundary(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._break(2)
        elif tag in _LINES:
            self._break(1)
        elif tag in _SET_APART:
            self._blank = True
        if tag in _BLOCKS and tag not in ("p", "div"):  # which may begin an item
            self._mark = ""
        if tag == "tr":
            self._cells = self._bars = 0
            self._row_is_empty = True

    def _break(self, line_ends: int) -> None:
        if not (self._cells and self._row_is_empty):  # a paragraph may begin a cell, not its row
            self._line_ends = max(self._line_ends, line_ends)

    def _put(self, text: str, line_ends: int) -> None:
        gap = ""
        if self._bars and not self._row_is_empty:
            gap = " |" * self._bars + " "
        elif self.texts:
            gap = "\n" * self._line_ends or " " * self._blank
            line_ends += self._line_ends
        if self._bars and self._row_is_empty:
            gap += "| " * self._bars
        self._gaps.append(gap + self._mark)
        self.texts.append(self._opening + text)
        self._opening = ""
        self.lines += line_ends
        self.characters += len(text)
        self.linked += len(text) if self._nested["a"] else 0
        self._line_ends = self._bars = 0
        self._blank = self._row_is_empty = False
        self._mark = ""
