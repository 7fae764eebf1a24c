"""Judged queries of code: names, their words, and what docstrings say, with the files that define
and use the names."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

from arag_search.evaluation.bootstrap import SEED

DRAWN = 60
"""The queries of each kind."""
DEFINES, USES = 2, 1
KINDS = ("name", "words", "sentence", "sentence without its words")

_WORDS = 40
"""The words of a sentence that are asked for."""
_NAME = re.compile(r"[A-Za-z_$][\w$]{3,}")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_EXPORTED = re.compile(
    r"^(?:export\s+(?:default\s+|async\s+|abstract\s+|declare\s+)*(?:function\*?|class|const)\s+"
    r"|(?:module\.)?(?:exports|app|req|res|proto)\.)([\w$]{4,})",
    re.MULTILINE,
)
_TESTS = re.compile(r"(^|/)(__)?tests?(__)?/|(^|/)conftest\.py$|\.(test|spec)\.\w+$")
_SCRIPTS = (".js", ".mjs", ".ts", ".tsx")


class Judged(NamedTuple):
    """A query, the grade of each relevant file (DEFINES or USES), and the name that it is about."""

    query: str
    grades: Mapping[str, int]
    name: str = ""


class _Named(NamedTuple):
    """The definitions of a name: the files with them, and the first sentence on it."""

    files: list[str]
    sentences: list[str]


def judged_queries(folder: Path) -> dict[str, list[Judged]]:
    """Return up to DRAWN queries of each kind on the code in a folder, the same at each call. Names
    are defined once or twice, and begin with no underscore and not with "test"."""
    named: dict[str, _Named] = defaultdict(lambda: _Named([], []))
    users: dict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.rglob("*")):
        file = path.relative_to(folder).as_posix()
        for name, sentence, is_definition in _read(path):
            if not is_definition:
                users[name].add(file)
                continue
            named[name].files.append(file)
            named[name].sentences.extend([sentence] if sentence else [])
    chosen = {
        name: of
        for name, of in named.items()
        if len(of.files) <= 2 and _NAME.fullmatch(name) and not re.match("_|test", name, re.I)
        if not any(_TESTS.search(file) for file in of.files)
    }
    kinds: dict[str, list[Judged]] = {kind: [] for kind in KINDS}
    for name, (files, sentences) in chosen.items():
        grades = {**dict.fromkeys(users[name], USES), **dict.fromkeys(files, DEFINES)}
        words = _WORD.findall(name)
        kinds["name"].append(Judged(name, grades, name))
        if len(words) > 1:
            kinds["words"].append(Judged(" ".join(words).lower(), grades, name))
        for sentence in sentences[:1]:
            texts = re.findall(r"\w+", sentence)
            own = {word.lower() for word in (name, *words)}
            others = [text for text in texts if text.lower() not in own]
            for kind, kept in zip(KINDS[2:], (texts, others), strict=True):
                if len(kept) > 2:
                    kinds[kind].append(Judged(" ".join(kept[:_WORDS]), grades, name))
    drawn = {
        kind: Random(f"{SEED} {kind}").sample(queries, min(DRAWN, len(queries)))
        for kind, queries in kinds.items()
    }
    return {kind: queries for kind, queries in drawn.items() if queries}


def _read(path: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield the names that a file defines, with the first sentences on them, and those it uses."""
    if path.suffix == ".py":
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            return
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    paragraph = (ast.get_docstring(node) or "").partition("\n\n")[0]
                    yield node.name, re.split(r"(?<=\.)\s", paragraph)[0], True
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    yield name, "", False
                case _:
                    pass
    elif path.suffix in _SCRIPTS and not path.name.endswith(".d.ts"):
        text = path.read_text("utf-8", errors="replace")
        defined = dict.fromkeys(match[1] for match in _EXPORTED.finditer(text))
        yield from ((name, "", True) for name in defined)
        yield from ((name, "", False) for name in {*_NAME.findall(text)}.difference(defined))
