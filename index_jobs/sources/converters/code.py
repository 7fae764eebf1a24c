"""The outline of code: classes and the like as sections, functions as entries.

Definitions are recognised by how their first line looks, after comments and strings are hidden.
They end where the indentation does, or at the closing line that stands below their first one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from arag_search.corpus import Outline
from index_jobs.sources.converters.outline import Part, outline_of

_HEAD_CHARACTERS = 2_000
_GENERATED = re.compile(r"(?m:^[^\w\n]*@generated\b)|\bCode generated\b.*\bDO NOT EDIT\b")
_WRITTEN = re.compile(r"\b(?:auto-?)?generated\b", re.IGNORECASE)
_NOT_EDITED = re.compile(r"\bdo(?:n't| not) (?:edit|modify|change)\b", re.IGNORECASE)
_PACKED = ("js", "mjs")
_PACKED_LINE = 300
"""Packed code has more characters than this in a line, on average."""

_LINE_CHARACTERS = 300
_HEADER_LINES = 40
"""The most lines over which the name and the parameters of a function may run."""

_STRINGS = r"""|"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?"""
_SLASHES = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_HASH = r"(?<![^\s;])#[^\n]*" + _STRINGS
_HIDDEN = "\x01"
_NOT_NEWLINE = re.compile(r"[^\n]")

_SECTIONS = frozenset(
    """
    class interface struct impl module namespace trait enum union object protocol extension record
    mod defmodule type package @interface
    """.split()  # noqa: SIM905
)
_NO_FUNCTIONS = frozenset(
    """
    if for while switch return sizeof offsetof catch else do new using lock foreach synchronized
    super this assert __attribute__
    """.split()  # noqa: SIM905
)
_NAME = re.compile(r"[*&]*((?:[\w$]+::)*[~#]?[\w$]+)")
_NO_TYPE = re.compile(r"[=.!?+|/{\"']|->|\breturn\b|\bnew\b|\bthrow\b|\belse\b")
_DECORATION = re.compile(r"@\w|#!?\[|\[\w|template\s*<|__attribute__")
_CONTINUED = re.compile(r"[)\]]")
_GENERIC = re.compile(r"<[^()<>]*(?:<[^()<>]*>[^()<>]*)*>\s*$")
_SIGNS = re.compile(r"[(){};]")
_LABEL = re.compile(r"(?!(?:else|except|finally|try)\b)\w+(?: slots)?\s*:$")
_END = re.compile(r"\}|end\b[;,)]*$")
_TYPE = re.compile(r"[\w\s*&:<>,]+$")
_HEADER_GOES_ON = re.compile(r"[{)\]:#]|where\b|throws\b")


def _keywords(words: str) -> str:
    """Return the pattern of definitions that begin with one of these words, after modifiers."""
    return (
        r"(?:(?!return\b|new\b|else\b|throw\b|import\b)(?:[a-z-]+(?:\([\w ]*\))?|\"\S*)\s+)*"
        rf"(?P<word>{'|'.join(words.split())})(?!\w)[\s*]*(?:<[^>]*>\s*)?"
        r"(?P<owner>\([^()]*\)\s*)?(?P<name>[\w$`]+(?:(?:::|[.:-])[\w$]+)*[?!`]?)"
    )


_C = (
    r"(?:typedef\s+)?(?:template\s*<[^{;]*>\s*)?(?P<word>class|struct|union|enum)\s+"
    r"(?:class\s+)?(?:[A-Z_]+\s+)?(?P<name>[\w:]+)\s*(?:final\s*)?(?:$|[:{])"
)
_JAVA = _keywords("class interface @interface enum record struct namespace")
_FUNCTION_VALUE = (
    r"|(?:export\s+)?(?:(?:const|let|var)\s+)?(?P<function>[\w$.]+)(?:\s*:[^=]*)?\s*=\s*"
    r"(?:async\b\s*)?(?:function\b|\([^()]*\)[^=]*=>|[\w$]+\s*=>)"
)
_JS = _keywords("class interface namespace module enum function type") + _FUNCTION_VALUE
_OTHERS = _keywords(
    "class interface enum struct object trait protocol extension namespace fun func function def fn"
)
_IMPL = r"(?:(?:unsafe|default)\s+)*(?P<block>impl)\b(?:\s*<[^{]*?>(?=\s))?\s+(?P<type>[^{]*)|"
_RUST = _IMPL + _keywords("fn struct enum union trait mod type macro_rules!")
_SQL = (
    r"(?i:create\s+(?:or\s+replace\s+)?(?:\w+\s+){0,3}?(?P<word>table|function|procedure|view|index"
    r"|trigger|type|aggregate|operator|domain|schema)\s+(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"]+))"
)
_PLAIN_FUNCTION = (
    r"|(?:function\s+)?(?P<plain>[\w:.-]+)\s*(?:\(\s*\)(?:\s|\(|\{|$)|(?:<-|=)\s*function\b)"
)
_SCRIPT = _keywords("function def defp class module struct macro defmodule defmacro defmacrop")
_DOCSTRING = r"""|\"""(?:\\.|[^\\])*?(?:\"""|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z)"""
_RUST_STRINGS = r"""|"(?:\\.|[^"\\])*+"?|'(?:\\[^'\n]+|[^\\'\n])'"""
_SQL_HIDDEN = r"--[^\n]*|/\*.*?(?:\*/|\Z)|\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z)|'[^'\n]*+'?"

_LANGUAGES = {
    ending: language
    for endings, *language in (
        ("c cc cpp cxx h hh hpp m mm", _SLASHES + _STRINGS, _C),
        ("java cs dart", _SLASHES + _STRINGS, _JAVA),
        ("js jsx mjs ts tsx vue", _SLASHES + _STRINGS + r"|`(?:\\.|[^`\\])*+`?", _JS),
        ("kt php scala swift zig", _SLASHES + _STRINGS, _OTHERS),
        ("go", _SLASHES + _STRINGS + r"|`[^`]*+`?", _keywords("func type")),
        ("rs", _SLASHES + _RUST_STRINGS, _RUST),
        ("py pyi pyx", r"#[^\n]*" + _DOCSTRING + _STRINGS, _keywords("def class")),
        ("sql", _SQL_HIDDEN, _SQL),
        ("lua", r"--\[\[.*?(?:\]\]|\Z)|--[^\n]*" + _STRINGS, _keywords("function")),
        ("pl pm", _HASH, r"(?P<word>sub)\s+(?P<name>[\w:]+)"),
        ("sh bash rb ex jl r ps1", _HASH, _SCRIPT + _PLAIN_FUNCTION),
    )
    for ending in endings.split()
}
"""For each ending: comments and strings, which are hidden, and the beginning of a definition. A
definition has a keyword and a name, or a name alone."""

_CALLS_IN_CLASSES = (_JAVA, _JS)
"""Besides C: where a function may be a name before a bracket, here in classes only."""


def is_generated(text: str, ending: str) -> bool:
    """Return whether code says above its first definitions that a program wrote it, or whether it
    is JavaScript that a program packed."""
    head = text[:_HEAD_CHARACTERS]
    if _GENERATED.search(head) or (_WRITTEN.search(head) and _NOT_EDITED.search(head)):
        return True
    lines = text.count("\n") + 1
    return ending in _PACKED and len(text) > max(_HEAD_CHARACTERS, lines * _PACKED_LINE)


def outline(text: str, ending: str) -> Outline:
    """Return the outline of code, by the ending of its file, without its dot; empty for languages
    whose definitions are not recognised."""
    language = _LANGUAGES.get(ending)
    return outline_of(text, _Definitions(text, *language).parts) if language else ()


class _Open(NamedTuple):
    """A definition whose end is not known. It has its indentation, its first line, the last line
    before its body, and its name. ``is_section`` is whether it is a section."""

    indent: int
    first: int
    header: int
    name: str
    is_section: bool


class _Definitions:
    def __init__(self, text: str, hidden: str, definition: str) -> None:
        self.parts: list[Part] = []
        self._definition = re.compile(definition)
        self._is_c = definition == _C
        self._has_members = definition in _CALLS_IN_CLASSES
        code = re.sub(hidden, _hide, text, flags=re.DOTALL)
        self._lines = [line.rstrip().expandtabs(4) for line in code.split("\n")]
        self._stack: list[_Open] = []
        self._last_code = -1
        self._read(text.split("\n"))
        self._close_from(0)

    def _read(self, originals: list[str]) -> None:
        lead = -1  # where the comments and decorators directly above the next line begin
        lead_indent = 0
        for number, line in enumerate(self._lines):
            bare = line.lstrip()
            if not bare:  # a comment, or an empty line
                is_comment = bool(originals[number].strip())
                lead = (number if lead < 0 else lead) if is_comment else -1
                lead_indent = 1 << 30
                continue
            is_directive = self._is_c and bare[0] == "#"
            if bare[0] != _HIDDEN and not is_directive:
                indent = len(line) - len(bare)
                self._end_before(number, indent, bare)
                if _DECORATION.match(bare) or self._is_type(bare):
                    lead = number if lead < 0 else lead
                    lead_indent = 1 << 30 if self._is_c else indent
                elif lead < 0 or (indent <= lead_indent and not _CONTINUED.match(bare)):
                    self._begin(number, indent, bare[:_LINE_CHARACTERS], lead)
                    lead = -1
            self._last_code = number

    def _end_before(self, number: int, indent: int, bare: str) -> None:
        """Close the definitions that this line ends, or that end above it."""
        stack = self._stack
        while stack and indent <= stack[-1].indent and number > stack[-1].header:
            if _CONTINUED.match(bare) or _LABEL.match(bare):
                return
            ends = _END.match(bare)
            if ends and indent == stack[-1].indent:
                self._last_code = number
            self._close_from(len(stack) - 1)
            if ends and self._last_code == number:
                return

    def _close_from(self, depth: int) -> None:
        while len(self._stack) > depth:
            last = self._stack.pop()
            kind = "section" if last.is_section else "entry"
            end = max(self._last_code, last.header) + 1
            self.parts.append(Part(last.first, end, kind, last.name))

    def _is_type(self, bare: str) -> bool:
        """Return whether a line may be the type of a function of C whose name is on the next."""
        return (
            self._is_c
            and _TYPE.match(bare) is not None
            and _LABEL.match(bare) is None
            and self._definition.match(bare) is None
        )

    def _begin(self, number: int, indent: int, bare: str, lead: int) -> None:
        match = self._definition.match(bare)
        name = _name(match) if match is not None else self._called(bare, lead >= 0)
        if not name:
            return
        header, mark = self._header(number, indent)
        is_declared = mark == ";" and (match is not None or len(bare.partition("(")[0].split()) > 1)
        if mark != "{" and (self._is_c or not (is_declared or match is not None)):
            return
        is_section = match is not None and name.split()[0].lower() in _SECTIONS
        first = lead if lead >= 0 else number
        self._stack.append(_Open(indent, first, header, name, is_section))

    def _called(self, bare: str, has_lead: bool) -> str:
        inner = self._stack[-1] if self._stack else None
        may_call = inner.is_section if inner else self._is_c
        if not may_call or not (self._is_c or self._has_members):
            return ""
        head, bracket, _ = bare.partition("(")
        head = _GENERIC.sub("", head)
        words = head.split()
        if not bracket or not words or _NO_TYPE.search(head):
            return ""
        name = _NAME.fullmatch(words[-1])
        if name is None or not _NO_FUNCTIONS.isdisjoint((words[0], name[1])):
            return ""
        if len(words) == 1 and not (inner or has_lead or "::" in name[1]):
            return ""  # a macro
        return f"{name[1]}()"

    def _header(self, number: int, indent: int) -> tuple[int, str]:
        """Return the line where the header that begins in this line ends, and the sign that ends
        it, which is empty where none does."""
        depth = 0
        for following in range(number, min(number + _HEADER_LINES, len(self._lines))):
            line = self._lines[following][: _LINE_CHARACTERS * 4]
            bare = line.lstrip()
            if following > number and bare:
                if (
                    depth <= 0
                    and len(line) - len(bare) <= indent
                    and not _HEADER_GOES_ON.match(bare)
                ):
                    break
                if bare[0] == "#":
                    continue
            for sign in _SIGNS.findall(line):
                depth += (sign == "(") - (sign == ")")
                if depth <= 0 and sign in "{};":
                    return following, sign
        return number, ""


def _name(match: re.Match[str]) -> str:
    """Return the name of a definition: with its keyword, or with brackets if it has none."""
    groups = match.groupdict()
    if function := groups.get("function") or groups.get("plain"):
        return f"{function}()"
    if block := groups.get("block"):
        return f"{block} {groups['type'].strip()}"
    return f"{groups['word']} {groups.get('owner') or ''}{groups['name']}"


def _hide(match: re.Match[str]) -> str:
    """Replace a comment by blanks, and a string, after its quotation mark, by signs that are not in
    names, so that lines stay lines."""
    text = match[0]
    if text[0] in "\"'`$":
        return text[0] + _NOT_NEWLINE.sub(_HIDDEN, text[1:])
    return _NOT_NEWLINE.sub(" ", text)
