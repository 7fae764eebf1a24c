"""Search over manuals and code: settings, names, units that are cut, twins.

    python -m bench manuals
    python -m bench manuals --postgresql FOLDER --python FOLDER --column after

Reads PostgreSQL's manual (Debian's postgresql-doc-NN), Python's (python3.NN-doc, with its sources)
and modules of an installed library, drawn by a seed. Measures settings by name, the list of those
that need a restart, qualified names, identifiers, entries and functions that are cut, twins, and
the size and processor time of each index. What is not there is left out, with the reason. Figures
of one --column replace those of the same column. See bench/studies/manuals.md.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions, version
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.evaluation.bootstrap import SEED
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tokens import count_tokens
from arag_search.tools.base import ReadSet, ToolResult
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.quality.packages import (
    AbsentError,
    Definition,
    Entry,
    copied_library,
    definitions_in,
    index_files,
    key_of,
    manual_entries,
    manual_in,
    manual_version,
)
from bench.report.estimates import counted, mean
from bench.report.rows import Figure, Row, Target, circumstances, corpus_of, show
from bench.workbench import say

NAME = "manuals"
SETTINGS, NAMES, TWIN_QUERIES = 60, 150, 24
RESTART = "only be set at server start"
UNIT_TOKENS = 500
"""The length up to which a function or an entry should be in one passage."""
_DEFAULT = re.compile(r"[^.]*\b[Tt]he default (?:value )?is\b.*?\.(?=\s|$)")
_TERM = re.compile(r"[\w.]+ \(\w+\)")
_HEADING = re.compile(r"<h[23]>(.*?)<a class=\"headerlink\"")
_TAG = re.compile(r"<[^>]*>")
_QUALIFIED = re.compile(r"(?!c\.)[a-z]\w*(?:\.\w+)+")
"""The id of a name of Python; those of C begin with ``c.``, which is no part of the name."""
_SHARED_WORDS = 0.5
"""The share of the words of the shorter of two passages that makes them twins."""

Segments = Sequence[str]
"""Texts that a reply shows: its passages with their headers, or all of it without any."""

_Choice = TypeVar("_Choice")


def main(arguments: Sequence[str]) -> int:
    """Measure what is there, add the figures and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    add = parser.add_argument
    for manual in ("postgresql", "python"):
        add(f"--{manual}", type=Path, metavar="FOLDER", help="its package, if not installed")
    parser.add_default("--library", str, "transformers", "installed library")
    parser.add_default("--modules", positive, 500, "modules of it, drawn by a seed")
    parser.add_default("--column", str, "now", "name of the figures in the file of results")
    parser.add_kept_work("indexes", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    run = circumstances(command, seed=SEED)
    options.work.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    for measure in (_postgresql, _python, _library):
        try:
            figures += measure(options)
        except AbsentError as error:
            say(f"Left out: {error}")
    if not figures:
        raise BenchError("There is nothing to measure.", do="Get a package, as said above.")
    named = [
        Figure(f"{options.column}: {figure.name}", figure.rows, figure.details)
        for figure in figures
    ]
    show(options.json, named, run)
    return 0


def _postgresql(options: argparse.Namespace) -> list[Figure]:
    """Measure settings, the list of those that need a restart, and entries of PostgreSQL."""
    pattern, package = "postgresql-doc-[0-9]*", "postgresql-doc-NN"
    folder = manual_in(options.postgresql, pattern, "runtime-config.html", package)
    location = options.work / "postgresql"
    figures = [_indexed("PostgreSQL's manual", folder, location)]
    entries = manual_entries(folder)
    settings = [
        entry
        for entry in entries
        if entry.page.startswith("runtime-config") and entry.id.startswith("GUC-")
    ]
    with open_index(location, search_timeout_s=None) as index:
        figures += [
            _settings(index, defaults(settings)),
            _restarts(index, entries),
            _cut("PostgreSQL's entries", Passages.of(index), entry_places(entries)),
        ]
    return _about(figures, f"postgresql-doc: {manual_version(folder)}")


def _python(options: argparse.Namespace) -> list[Figure]:
    """Measure qualified names, entries and twins of Python's manual."""
    page, package = "library/subprocess.html", "python3.NN-doc"
    folder = manual_in(options.python, "python3*", page, package)
    location = options.work / "python"
    figures = [_indexed("Python's manual", folder, location)]
    entries = manual_entries(folder)
    named = {entry.id: entry for entry in entries if _QUALIFIED.fullmatch(entry.id)}
    chosen = [named[id] for id in drawn(sorted(named), NAMES)]
    with open_index(location, search_timeout_s=None) as index:
        figures += [
            _names(index, chosen),
            _cut("Python's entries", Passages.of(index), entry_places(entries)),
            _twins(index, folder, figures[0].details["notes"]),
        ]
    return _about(figures, f"python3-doc: {manual_version(folder)}")


def _library(options: argparse.Namespace) -> list[Figure]:
    """Measure identifiers and functions of the source of a library."""
    folder, location = options.work / "source", options.work / "library"
    paths = copied_library(options.library, folder, options.modules)
    figures = [_indexed("source", folder, location, ("*.py",))]
    definitions = list(definitions_in(folder))
    functions = [definition for definition in definitions if not definition.is_class]
    with open_index(location, search_timeout_s=None) as index:
        figures += [
            _identifiers(index, folder, paths, definitions),
            _cut("functions", Passages.of(index), function_places(functions)),
        ]
    packages = packages_distributions().get(options.library, ())
    about = [f"{package} {version(package)}" for package in packages] or [options.library]
    return _about(figures, f"{', '.join(about)}: {len(paths)} modules")


def _about(figures: Sequence[Figure], package: str) -> list[Figure]:
    """Return figures that name the package."""
    about = {"package": package}
    return [Figure(figure.name, figure.rows, {**figure.details, **about}) for figure in figures]


def drawn(choices: Sequence[_Choice], count: int) -> list[_Choice]:
    """Draw as many of the choices, or all if there are fewer, by the seed."""
    return Random(SEED).sample(choices, min(count, len(choices)))


def _search(index: Index, **arguments: Any) -> ToolResult:
    """Call ``logical_search`` of preset ``logical_read``, as the first call of a conversation."""
    tool = tools_of(load_preset(DEFAULT_PRESET), index)["logical_search"]
    result = tool.run(arguments, ReadSet())
    if result.status == "error":
        raise BenchError(f"logical_search failed: {result.text}", where=str(arguments))
    return result


def _indexed(name: str, folder: Path, location: Path, include: Sequence[str] = ()) -> Figure:
    """Build an index and measure its bytes, its passages and the processor time."""
    say(f"{name}: index")
    began = time.process_time()
    report = index_files(folder, location, include)
    seconds = time.process_time() - began
    size = sum(path.stat().st_size for path in location.rglob("*") if path.is_file())
    with open_index(location, search_timeout_s=None) as index:
        corpus = corpus_of(index.manifest)
    rows = (
        Row("bytes of the index", size, ""),
        Row("processor time of the build", seconds, "s"),
        Row("passages", corpus["chunks"], ""),
    )
    return Figure(f"{name}: index", rows, {"corpus": corpus, "notes": list(report.notes)})


# Settings of PostgreSQL


class Default(NamedTuple):
    """A setting, and whether texts show the sentence with its default."""

    name: str
    is_shown: Callable[[Segments], bool]


def defaults(settings: Sequence[Entry]) -> list[Default]:
    """Draw settings whose text has a sentence with the default."""
    sentences = {entry: match[0] for entry in settings if (match := _DEFAULT.search(entry.body))}
    terms = {
        key_of(term): entry
        for entry in settings
        for term in _TERM.findall(entry.term) or [entry.term]
    }
    counts = Counter(map(key_of, sentences.values()))

    def default(entry: Entry) -> Default:
        sentence = key_of(sentences[entry])
        is_clear = counts[sentence] == 1

        def is_shown(segments: Segments) -> bool:
            texts = map(key_of, segments)
            return any(is_below(sentence, entry, text, terms, is_clear) for text in texts)

        return Default(entry.name, is_shown)

    return [default(entry) for entry in drawn(list(sentences), SETTINGS)]


def is_below(
    sentence: str, entry: Entry, text: str, terms: Mapping[str, Entry], is_clear: bool
) -> bool:
    """Return whether a text shows a sentence as that of an entry: the term of the entry is the last
    of all ``terms`` above the sentence, or only this entry has the sentence, which stands below no
    term or has the name of the entry. All texts are keys."""
    at = text.find(sentence)
    while at >= 0:
        above = {term: text.rfind(term, 0, at) for term in terms if term in text[:at]}
        # wal_segment_size ends where segment_size ends
        nearest = max(above, key=lambda term: (above[term] + len(term), len(term)), default=None)
        if nearest is not None and terms[nearest] == entry:
            return True
        if is_clear and (nearest is None or key_of(entry.name) in sentence):
            return True
        at = text.find(sentence, at + 1)
    return False


def _settings(index: Index, asked: Sequence[Default]) -> Figure:
    """Measure whether the first reply for a name shows the sentence with its default."""
    replies = [_search(index, query=default.name) for default in asked]
    shown = [
        default.is_shown(
            [reply.text[span.start : span.end] for span in reply.passages] or [reply.text]
        )
        for default, reply in zip(asked, replies, strict=True)
    ]
    rows = (
        counted("default in the first reply", shown, _at_least(54 / 60, shown)),
        mean("tokens of the reply", [reply.result_tokens for reply in replies]),
    )
    missed = [default.name for default, is_shown in zip(asked, shown, strict=True) if not is_shown]
    return Figure("settings by name", rows, {"missed": missed})


def _restarts(index: Index, entries: Sequence[Entry]) -> Figure:
    """Count the settings that need a restart in one reply, by form of the call."""
    right = {entry.name for entry in entries if RESTART in entry.text}
    others = {entry.name for entry in entries if entry.id.startswith("GUC-")} - right
    calls: dict[str, tuple[dict[str, Any], Target | None, Target | None]] = {
        "text": ({"top_k": 20}, None, None),
        "lines": ({"show": "lines"}, Target("at least", len(right)), Target("at most", 1500)),
    }
    rows: list[Row] = []
    for form, (arguments, least, most) in calls.items():
        reply = _search(index, query=f'"{RESTART}"', granularity="sentence", **arguments)
        named = names_in([reply.text], right)
        rows += [
            counted(f"{form}: named", [name in named for name in sorted(right)], least),
            Row(f"{form}: other settings named", len(names_in([reply.text], others)), ""),
            Row(f"{form}: tokens of the reply", reply.result_tokens, "", target=most),
        ]
    return Figure("settings that need a restart, one call", tuple(rows))


def names_in(segments: Segments, names: Collection[str]) -> set[str]:
    """Return those of the names of settings that texts have as words."""
    return {word for text in segments for word in re.findall(r"[\w.]*\w", text) if word in names}


# Names of Python, identifiers of a library


def _names(index: Index, entries: Sequence[Entry]) -> Figure:
    """Measure whether the page of a qualified name, or its source, is among the first hits."""
    right: list[bool] = []
    itself: list[bool] = []
    for entry in entries:
        hits = index.logical_search(entry.id, top_k=10, feedback=False).hits
        right.append(any(_page_of(hit.doc_id) == _page_of(entry.page) for hit in hits))
        itself.append(any(hit.doc_id == entry.page for hit in hits))
    rows = (
        counted("page or its source in ten hits", right, _at_least(140 / 150, right)),
        counted("page in ten hits", itself),
    )
    missed = [entry.id for entry, is_right in zip(entries, right, strict=True) if not is_right]
    return Figure("qualified names", rows, {"missed": missed})


def _identifiers(
    index: Index, folder: Path, paths: Sequence[Path], definitions: Sequence[Definition]
) -> Figure:
    """Measure the recall of files that have an identifier, and whether its definition is first."""
    files: dict[str, set[str]] = {}
    for path in paths:
        for word in set(re.findall(r"\w+", path.read_text("utf-8", "replace"))):
            files.setdefault(word, set()).add(path.relative_to(folder).as_posix())
    homes: dict[str, set[str]] = {}
    for definition in definitions:
        if not definition.name.startswith("__"):
            homes.setdefault(definition.name, set()).add(definition.file)
    recalls: list[float] = []
    first: list[bool] = []
    for name in drawn(sorted(homes), NAMES):
        hits = index.logical_search(name, top_k=1000, per_document=1, feedback=False).hits
        recalls.append(len(files[name] & {hit.doc_id for hit in hits}) / len(files[name]))
        line = re.compile(rf"\b(?:def|class) {name}\b")
        first.append(
            bool(hits)
            and hits[0].doc_id in homes[name]
            and line.search(hits[0].content) is not None
        )
    rows = (
        mean("recall of files", recalls, Target("at least", 0.99)),
        counted("definition first", first),
    )
    return Figure("identifiers", rows)


def _twins(index: Index, folder: Path, notes: Iterable[str]) -> Figure:
    """Count twins in the first five hits of queries, in the whole index and without the files that
    the notes of its build name as repeating others."""
    headings = {
        words
        for path in sorted(folder.glob("library/*.html"))
        for heading in _HEADING.findall(path.read_text("utf-8", "replace"))
        if len((words := " ".join(re.findall(r"\w+", _TAG.sub("", heading)))).split()) > 1
    }
    queries = drawn(sorted(headings), TWIN_QUERIES)
    target = Target("at most", 2)
    rows = [counted("twins among the first five hits", list(_are_twins(index, queries)), target)]
    if named := re.findall(r"--exclude '([^']+/)'", " ".join(notes)):
        rest = index.within(" AND ".join(f'NOT path:"{folder}"' for folder in named))
        without = list(_are_twins(rest, queries))
        rows.append(counted("twins without the files that the build names", without, target))
    return Figure("twins", tuple(rows))


def _are_twins(index: Index, queries: Iterable[str]) -> Iterator[bool]:
    """Yield for each passage of replies whether it is near-identical to an earlier one, of a page's
    other form, and has a place of its own."""
    for query in queries:
        result = _search(index, query=query)
        ids = [
            span.id for span in result.passages if span.left_out != "same" and span.kind == "hit"
        ]
        chunks = [chunk for chunk in index.read(ids) if chunk is not None]
        texts = [
            (chunk.doc_id, {key_of(word) for word in chunk.content.split()}) for chunk in chunks
        ]
        for number, (page, words) in enumerate(texts):
            yield any(
                other != page
                and _page_of(other) == _page_of(page)
                and len(words & its) >= _SHARED_WORDS * min(len(words), len(its))
                for other, its in texts[:number]
            )


def _page_of(document: str) -> str:
    return document.removeprefix("_sources/").removesuffix(".rst.txt").removesuffix(".html")


# Units that are cut


class Passages:
    """Where the passages of each document end, in the key of its text; ``documents`` are passages
    by id."""

    def __init__(self, documents: Mapping[str, Sequence[str]]) -> None:
        self._keys: dict[str, tuple[str, list[int]]] = {}
        for id, passages in documents.items():
            keys = [key_of(text) for text in passages]
            self._keys[id] = "".join(keys), list(accumulate(map(len, keys)))

    @staticmethod
    def of(index: Index) -> Passages:
        """Read those of an index."""
        return Passages(
            {
                document.id: [chunk.content for chunk in document.chunks]
                for document in index.documents()
            }
        )

    def cuts(self, units: Iterable[tuple[str, str, int]]) -> Iterator[bool | None]:
        """Yield for each unit (document, text, where its key begins at the earliest, or -1: not
        before the unit before it) whether it is in several passages; None if it is not there."""
        last, at = "", 0
        for document, text, earliest in units:
            whole, ends = self._keys.get(document, ("", []))
            if earliest >= 0 or document != last:
                last, at = document, max(earliest, 0)
            key = key_of(text)
            start = whole.find(key, at)
            if start < 0:
                yield None
                continue
            at = start + 1
            yield any(start < end < start + len(key) for end in ends)


def entry_places(entries: Iterable[Entry]) -> Iterator[tuple[str, str, int]]:
    """Yield page and text of short entries, in order."""
    for entry in entries:
        if count_tokens(entry.text) <= UNIT_TOKENS:
            yield entry.page, entry.text, -1


def function_places(functions: Iterable[Definition]) -> Iterator[tuple[str, str, int]]:
    """Yield file, source and beginning of short functions."""
    for function in functions:
        if count_tokens(function.source) <= UNIT_TOKENS:
            yield function.file, function.source, function.starts


def _cut(what: str, passages: Passages, units: Iterable[tuple[str, str, int]]) -> Figure:
    """Count the short units that are in several passages."""
    cuts = list(passages.cuts(units))
    known = [is_cut for is_cut in cuts if is_cut is not None]
    if not known:
        raise BenchError(f"No {what} are in the index.")
    aim = Target("at most", len(known) // 100)
    name = f"{what} of at most {UNIT_TOKENS} tokens"
    return Figure(name, (counted("cut", known, aim),), {"not recognised": len(cuts) - len(known)})


def _at_least(share: float, flags: Sequence[bool]) -> Target:
    return Target("at least", math.ceil(round(share * len(flags), 6)))
