"""OpenDocument files: texts, slides and sheets, whose elements become elements of Word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from importlib import import_module
from itertools import takewhile
from typing import IO, Any
from zipfile import ZipFile

from index_jobs.sources.converters import archives
from index_jobs.sources.converters.html import page_of
from index_jobs.sources.converters.numbering import BULLET, NumberedList, W, whole
from index_jobs.sources.converters.office.runs import SeenText, Styles
from index_jobs.sources.converters.office.word import WordText
from index_jobs.sources.converters.registry import ConvertedDocument, sensible_title

_AS_WORD = {
    **dict.fromkeys(("note", "note-citation", "covered-table-cell", "annotation", "notes", "forms",
                     "binary-data", "title", "desc"), "del"),
    **dict.fromkeys(("span", "a"), "r"), **dict.fromkeys(("s", "object"), "t"), "h": "p",
    "line-break": "br", "ruby": "part", "ruby-text": "rt", "table": "tbl", "table-row": "tr",
    "table-cell": "tc",
}  # fmt: skip
_VALUES = ("string-value", "date-value", "time-value", "boolean-value", "value")
_BLANKS = re.compile(r"[ \t\r\n]+")
_MOST_BLANKS = 80
_MOST_REPEATED = 1 << 16
"""The characters to which a cell or row is repeated; a hostile one is repeated a billion times."""


@cache
def _xml() -> Any:
    return import_module("lxml.etree")


def _plain(root: Any) -> Any:
    """Return an element without comments, instructions and the namespaces of names."""
    _xml().strip_tags(root, _xml().Comment, _xml().ProcessingInstruction)
    for element in root.iter("*"):
        element.tag = element.tag.rpartition("}")[2]
        for key in list(element.attrib):
            element.attrib[key.rpartition("}")[2]] = element.attrib.pop(key)
    return root


def _put(parent: Any, name: str, value: str | None = None) -> Any:
    """Add an element of Word, which may have a value, to another one."""
    return _xml().SubElement(parent, f"{W}{name}", {} if value is None else {f"{W}val": value})


def _text(text: str, outer: Any) -> Any:
    """Return a text as an element of Word, in a run of its own unless ``outer`` is a run."""
    run = _xml().Element(f"{W}r")
    made = _put(run, "t")
    made.text = _BLANKS.sub(" ", text)
    return made if outer.tag == run.tag else run


class _File(Styles):
    """The styles of a file, and the parts that are read with them. Styles have their family before
    their name, and lists share numbers if one continues another one."""

    def __init__(self, archive: ZipFile) -> None:
        super().__init__()
        self.unread = _xml().Element("unread")
        self._archive = archive
        self._seen = SeenText(self)
        self._levels: dict[str | None, dict[int, Any]] = {}
        self._list_styles: dict[str, str | None] = {}
        self._numbers: dict[object, dict[int, int]] = {}

    def add(self, styles: Any) -> None:
        """Add the named styles of a file or, after them, the styles of single paragraphs."""
        for style in styles.iter("style"):
            family, name = style.get("family"), style.get("name")
            id, base = f"{family} {name}", f"{family} {style.get('parent-style-name')}"
            is_named = style.getparent().tag == "styles"
            shown = style.get("display-name", name) if is_named else self.names.get(base)
            self.names[id] = shown or ""
            self._list_styles[id] = style.get("list-style-name", self._list_styles.get(base))
            self._styles[id] = word = _xml().Element("style")
            properties = _put(word, "rPr")
            _put(word, "basedOn", base)
            _put(properties, "rStyle", id)
            for look in style.iterfind("text-properties"):
                rise = look.get("text-position", "").partition(" ")[0]
                properties.set("baseline", {"super": "33%", "sub": "-33%"}.get(rise, rise))
                if font := look.get("font-name"):  # a second declaration of it has a number
                    _put(properties, "rFonts").set(f"{W}ascii", re.sub(r"(?<=\w)\d+$", "", font))
        for style in styles.iter("list-style", "outline-style"):
            name = style.get("name") if style.tag == "list-style" else ""
            self._levels[name] = dict(map(_level, style))

    def _as_word(self, root: Any) -> Any:
        """Turn an element and all below it into elements of Word, and return it."""
        for element in list(root.iter("*")):
            name, outer = element.tag, element.getparent()
            usual = "del" if name.endswith("-source") else name
            element.tag = f"{W}{_AS_WORD.get(name, usual)}"
            if name == "s":
                element.text = " " * min(whole(element.get("c"), 1), _MOST_BLANKS)
            elif name == "object":
                element.text = self._object(element)
            elif element.text and (name in ("p", "h", "span", "a") or element.text.strip()):
                element.insert(0, _text(element.text, element))
            if name in ("span", "a"):
                style = self._styles.get(f"text {element.get('style-name')}", ())
                element[:0] = map(deepcopy, style[:1])
            elif name in ("p", "h"):
                self._number(element, name == "h", outer)
            if element.tail and element is not root:
                element.addnext(_text(element.tail, outer))
        return root

    def _number(self, paragraph: Any, is_heading: bool, outer: Any) -> None:
        """Give a paragraph its style, and its number in a list or among headings."""
        name, level = paragraph.get("style-name"), min(whole(paragraph.get("outline-level"), 1), 9)
        id = f"paragraph {name}" if name else f"table-cell {outer.get('style-name')}"
        properties = _xml().Element(f"{W}pPr")
        paragraph.insert(0, properties)
        _put(properties, "pStyle", f"heading {level}" if is_heading else id)
        above = takewhile(lambda at: at.tag.startswith(f"{W}list"), paragraph.iterancestors())
        lists = [at for at in above if at.tag == f"{W}list"]
        given, before = self._list_styles.get(id), paragraph.itersiblings(f"{W}p", preceding=True)
        item, style, place, numbers = paragraph, "", level - 1, self._numbers.setdefault("", {})
        if outer.tag == f"{W}list-item" and next(before, None) is None:
            names = (outer.get("style-override"), *(at.get("style-name") for at in lists), given)
            style, place = next(filter(None, names), None), len(lists) - 1
            item, get = outer, lists[-1].get
            if (outermost := lists[-1]) not in self._numbers:
                other = get("continue-numbering") == "true" and get("style-name")
                numbers = self._numbers.get(get("continue-list") or other, {})
                for key in (outermost, get("style-name"), get("id")):
                    self._numbers[key] = numbers
            numbers = self._numbers[outermost]
        elif lists or not is_heading or given == "" or paragraph.get("is-list-header") == "true":
            return
        start = item.get("start-value")
        starts = {} if start is None else {place: whole(start, 1)}
        label = NumberedList(self._levels.get(style, {}), starts, numbers).label(place)
        properties.set("label", label)
        _put(properties, "numPr")

    def _object(self, element: Any) -> str:
        """Return the text of a formula; other objects are counted."""
        member = f"{element.get('href', '').removeprefix('./').rstrip('/')}/content.xml"
        if member not in self._archive.NameToInfo:
            return ""
        root = _plain(archives.parsed_xml(self._archive.read(member)))
        if root.tag == "math":
            return page_of(_xml().tostring(root, encoding="unicode")).text
        _put(self.unread, "altChunk")
        return ""

    def text(self, element: Any) -> WordText:
        """Return the paragraphs of an element, with the notes below it."""
        _xml().strip_elements(element, "tracked-changes", with_tail=False)
        notes = sorted(element.iter("note"), key=lambda note: note.get("note-class") == "endnote")
        text = WordText(self, None)
        for part in (self._as_word(element), *notes):
            text.add(part)
        return text

    def slide(self, page: Any) -> list[str]:
        """Return the lines of a slide, without bullets, and of the speaker's notes."""
        notes = page.findall("notes/*[@class='notes']")
        text = "\n".join(self.text(page).paragraphs)
        text = re.sub(rf"^{BULLET} ", "", text, flags=re.MULTILINE)
        for said in filter(None, (self._seen.of(frame).strip() for frame in notes)):
            text += f"\nNotes: {said}"
        return [" ".join(line.split()) for line in text.split("\n")]

    def rows(self, table: Any) -> Iterator[str]:
        """Yield the lines of a sheet, as often as they are repeated."""
        for row in table.iter("table-row"):
            shown: list[str] = []
            for cell in row.iterfind("table-cell"):
                if (text := cell.findtext("p")) is None:
                    text = "".join(cell.get(name, "") for name in _VALUES)
                font = self.look(f"table-cell {cell.get('style-name')}").font
                if len(cell) > 1 or any(map(len, cell)) or font:  # few: it takes ten times as long
                    text = self._seen.of(self._as_word(cell)) or text
                said = " ".join(map(self._seen.of, cell.iterfind(f"{W}del/{W}p"))).strip()
                text = " ".join((f"{text} ({said})" if said else text).split())
                shown += self._repeated(text, cell.get("number-columns-repeated"))
            yield from self._repeated(archives.joined(shown), row.get("number-rows-repeated"))
            row.clear()

    def _repeated(self, text: str, times: str | None) -> list[str]:
        most = _MOST_REPEATED // max(len(text), 1) + 1
        if text and whole(times, 1) > most:
            _xml().SubElement(self.unread, "repeated")
        return [text] * min(max(whole(times, 1), 1), most) if text else []


def _level(level: Any) -> tuple[int, Any]:
    """Return the place of a level of a list style, and the level as Word has it."""
    place = min(whole(level.get("level"), 1), 9)
    first = max(place - whole(level.get("display-levels"), 1), 0) + 1
    numbers = ".".join(f"%{at}" for at in range(first, place + 1))
    usual = f"{level.get('num-prefix', '')}{numbers}{level.get('num-suffix', '')}"
    form = "bullet" if level.tag.endswith(("bullet", "image")) else level.get("num-format")
    word = _xml().Element("lvl")
    _put(word, "start", level.get("start-value", "1"))
    _put(word, "numFmt", form or "none")
    _put(word, "lvlText", re.sub(r"(%\d+)%", r"\1", level.get("num-list-format", usual)))
    return place - 1, word


def _document(file: IO[bytes]) -> ConvertedDocument:
    """Return a file as one document. Deleted text of tracked changes, comments on texts and slides,
    headers and footers are left out."""
    with ZipFile(file) as archive:
        read, title = _File(archive), ""
        for name in ("meta.xml", "styles.xml"):
            if name in archive.NameToInfo:
                root = _plain(archives.parsed_xml(archive.read(name)))
                title = title or sensible_title(root.findtext(".//title"))
                read.add(root)
        root = _plain(archives.parsed_xml(archive.read("content.xml")))
        read.add(root)
        body = root.find("body")
        if body.find("spreadsheet") is not None:  # what has a source is a copy of another file
            tables = (at for at in body[0].iterfind("table") if at.find("table-source") is None)
            sheets = [(table.get("name", ""), list(read.rows(table))) for table in tables]
            return archives.sectioned_document(title, "sheet", sheets, [read.unread])
        if body.find("presentation") is not None:
            slides = [(str(n), read.slide(page)) for n, page in enumerate(body.iter("page"), 1)]
            titles = (sensible_title(next(filter(None, lines), "")) for _, lines in slides)
            title = title or next(filter(None, titles), "")
            return archives.sectioned_document(title, "slide", slides, [read.unread])
        text = read.text(body)
        title = title or text.title or text.first_heading
        whole_text = "\n\n".join(text.paragraphs).strip()
        return archives.document_of_parts(title, whole_text, text.parts, [read.unread])


convert = archives.converter("an OpenDocument file", _document)
