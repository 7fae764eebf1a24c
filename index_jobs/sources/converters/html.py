"""Web pages: the text that a reader sees, and the title.

The markup is parsed as browsers do it, by lexbor, without scripts and without network access.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arag_search.errors import SourceError
from index_jobs.sources.converters.registry import ConvertedDocument, whole_file
from index_jobs.sources.encodings import decoded
from index_jobs.sources.formats import Fields

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_UNSEEN = frozenset(
    """
    head script style template noscript iframe object embed canvas svg audio video map nav select
    datalist rp rt rtc annotation annotation-xml
    """.split()  # noqa: SIM905
)
"""Elements that are not part of the text: code, controls, pictures, navigation, the sources of
formulas. The readings of ruby text follow it."""

_PARAGRAPHS = frozenset(
    """
    address article aside blockquote body center details dialog dl fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hgroup hr main ol p pre section table ul
    """.split()  # noqa: SIM905
)
"""Elements with a blank line before and after them."""

_LINES = frozenset("caption dd div dt legend li option summary tr tbody thead tfoot".split())  # noqa: SIM905
"""Elements that begin and end a line."""

_CELLS = frozenset(("td", "th"))
_BLOCKS = _PARAGRAPHS | _LINES | _CELLS
_HEADING = re.compile(r"h([1-6])")
_SET_APART = frozenset(("button", "label", "output", "textarea"))
"""Elements inside a line with a blank before and after them."""

_DISPLAY = re.compile(
    r"(?:^|;)\s*display\s*:\s*(inline-\w+|block|flex|grid|list-item|table)\b", re.I
)
_NOT_DISPLAYED = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.I)
_COMMENT = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]{1,40})""", re.I)
_EMPTY_ELEMENT = re.compile(r"<([a-zA-Z][\w:.-]*)(\s[^<>]*)?/>")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905
_END_IS_OPTIONAL = _VOID | frozenset(
    """
    a body button colgroup dd dt head html li nobr optgroup option p rb rp rt rtc tbody td tfoot th
    thead tr
    """.split()  # noqa: SIM905
)
"""Elements that never nest directly, because the next element of the same kind ends them."""

_STYLE = frozenset("b big code em font i s small strike strong tt u".split())  # noqa: SIM905
_MAX_STEPS = 200_000_000
_MAX_COPIES = 4_000_000
_CHARSET_BYTES = 1 << 12
_SOFT_HYPHEN = "\u00ad"


class Page(NamedTuple):
    """The title and the text of a web page."""

    title: str
    text: str


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the page as one document. See Converter."""
    page = page_of(decoded_markup(whole_file(path, where), where), where)
    yield ConvertedDocument("", page.title, page.text)


def decoded_markup(data: bytes, where: str) -> str:
    """Decode a page in the encoding that it declares, or that is detected. Raises SourceError."""
    beginning = _COMMENT.sub(b"", data[:_CHARSET_BYTES])
    declared = _XML_ENCODING.match(beginning) or _META_CHARSET.search(beginning)
    return decoded(data, where, declared[1].decode("ascii") if declared else "")


def page_of(markup: str, where: str) -> Page:
    """Return the title and the text of HTML or XHTML.

    The title is that of ``<title>``, else the first ``<h1>``. Headings begin with ``#``, items of
    lists with ``-``, and cells of a row are separated by ``|``. Elements that are hidden or that
    hold navigation are left out. Raises SourceError for a page that would take too long to parse.
    """
    _check_nesting(markup, where)
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    if markup.lstrip("\ufeff \t\r\n").startswith("<?xml"):
        markup = _EMPTY_ELEMENT.sub(_with_end_tag, markup)
    # lexbor takes UTF-8, which has no lone surrogates.
    data = markup.encode("utf-8", "replace")
    tree = LexborHTMLParser(data, options=LexborDocumentOptions.WO_EVENTS)
    title = _words(tree.css_first("head > title")) or _words(tree.css_first("h1"))
    return Page(title, _text_below(tree.body) if tree.body is not None else "")


def _check_nesting(markup: str, where: str) -> None:
    """Raise SourceError if parsing could take minutes or gigabytes.

    For each tag, an HTML parser may walk all open elements, and repeat all open formatting
    elements, so work and memory grow with the product of tags and depth.
    """
    tags = depth = deepest = style_depth = deepest_style = 0
    for tag in _TAG.finditer(markup):
        tags += 1
        name = tag[2].lower()
        if name in _END_IS_OPTIONAL:
            continue
        step = -1 if tag[1] else 1
        depth = max(0, depth + step)
        deepest = max(deepest, depth)
        if name in _STYLE:
            style_depth = max(0, style_depth + step)
            deepest_style = max(deepest_style, style_depth)
    for kind, levels, limit in (
        ("elements", deepest, _MAX_STEPS // max(tags, 1)),
        ("elements of style", deepest_style, max(50, _MAX_COPIES // max(tags, 1))),
    ):
        if levels > limit:
            raise SourceError(
                f"The page has {levels:,} levels of nested {kind}.",
                where=where,
                allowed=f"at most {limit:,} in a page with {tags:,} tags",
                do="Close its elements.",
            )


def _with_end_tag(element: re.Match[str]) -> str:
    """Return an empty XHTML element as HTML, where ``<a/>`` would be an unclosed ``<a>``."""
    name, attributes = element[1], element[2] or ""
    return element[0] if name.lower() in _VOID else f"<{name}{attributes}></{name}>"


def _words(node: LexborNode | None) -> str:
    return " ".join(node.text().split()) if node is not None else ""


def _text_below(root: LexborNode) -> str:
    """Return the text below a node. The walk uses no recursion, however deep the tags are."""
    text = _Text()
    node: LexborNode | None = root
    open_tags: list[str] = []
    while node is not None:
        child = None
        if node.is_text_node:
            text.add(node.text_content or "")
        elif node.is_element_node and (tag := _shown_as(node, text)):
            text.enter(tag)
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
    return text.finished()


def _shown_as(node: LexborNode, text: _Text) -> str:
    """Return the tag as which an element is shown, which its style may change; empty if it is not
    shown."""
    tag = node.tag or ""
    if tag in _UNSEEN:
        if tag == "rt":
            text.readings.append(_words(node))
        return ""
    attributes = node.attrs
    style = attributes.get("style")
    if (
        "hidden" in attributes
        or (tag == "dialog" and "open" not in attributes)
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") == "navigation"
        or (tag == "button" and attributes.get("type") in ("submit", "reset"))
        or (style and _NOT_DISPLAYED.search(style))
    ):
        return ""
    if style and (display := _DISPLAY.search(style)) and tag not in _BLOCKS:
        return "label" if display[1].lower().startswith("inline") else "div"
    return tag


class _Text:
    """The text of a page while its elements are walked."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._line_ends = 0  # how many must come before the next text
        self._blank = False  # whether a blank must come before the next text
        self._mark = ""  # what the next text begins with, such as "- "
        self._cells = 0  # the cells of the current row so far
        self._bars = 0  # the bars between cells that are still to be written
        self._row_is_empty = True
        self._preformatted = 0
        self.readings: list[str] = []
        """The readings in the ruby element that is open."""

    def enter(self, tag: str) -> None:
        """Begin an element."""
        if tag == "br":
            self._break(min(self._line_ends + 1, 2))
        elif tag in _CELLS:
            self._bars += self._cells > 0
            self._cells += 1
            self._blank = True
        self._boundary(tag)
        if tag == "pre":
            self._preformatted += 1
        elif tag == "li":
            self._mark = "- "
        elif heading := _HEADING.fullmatch(tag):
            self._mark = "#" * int(heading[1]) + " "

    def leave(self, tag: str) -> None:
        """End an element."""
        if tag == "ruby" and any(self.readings):
            self.add(f" ({''.join(self.readings)})")
            self.readings.clear()
        self._boundary(tag)
        if tag == "pre":
            self._preformatted -= 1

    def add(self, text: str) -> None:
        """Add the text of a text node; white space is collapsed outside of ``<pre>``."""
        text = text.replace(_SOFT_HYPHEN, "")
        if self._preformatted:
            if text:
                self._put(text)
            return
        words = text.split()
        if not words:
            self._blank = self._blank or bool(text)
            return
        self._blank = self._blank or text[0].isspace()
        self._put(" ".join(words))
        self._blank = text[-1].isspace()

    def finished(self) -> str:
        """Return the whole text."""
        return "".join(self._pieces).strip()

    def _boundary(self, tag: str) -> None:
        """Begin or end a block."""
        if tag in _PARAGRAPHS:
            self._break(2)
            self._mark = ""
        elif tag in _LINES:
            self._break(1)
            self._mark = ""
        elif tag in _SET_APART:
            self._blank = True
        if tag == "tr":
            self._cells = self._bars = 0
            self._row_is_empty = True

    def _break(self, line_ends: int) -> None:
        if not (self._cells and self._row_is_empty):  # a paragraph may begin a cell, not its row
            self._line_ends = max(self._line_ends, line_ends)

    def _put(self, text: str) -> None:
        if self._bars and not self._row_is_empty:
            self._pieces.append(" |" * self._bars + " ")
        elif self._pieces:
            self._pieces.append("\n" * self._line_ends or " " * self._blank)
        if self._bars and self._row_is_empty:
            self._pieces.append("| " * self._bars)
        self._pieces.append(self._mark + text)
        self._line_ends = self._bars = 0
        self._blank = self._row_is_empty = False
        self._mark = ""
