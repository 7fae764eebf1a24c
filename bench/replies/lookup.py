"""How many lookups in manuals one reply answers, by keywords and by logical queries.

    apt-get download postgresql-doc-15 python3.11-doc git-doc nodejs-doc
    for package in *.deb; do dpkg-deb -x $package unpacked; done
    python -m bench lookup unpacked/usr/share/doc
    python -m bench lookup unpacked/usr/share/doc --peers bm25s,tantivy,fts5,ripgrep,ripgrep-3

Each lookup is one call of logical_search in a conversation of its own, as a model makes it. It is
made with keywords, with a logical query, and with the question as it was typed. The command counts
the lookups whose answer stands in the reply, and those whose answer stands only in a passage that
the reply names. It prints the tokens of replies, too. Peers get the keywords, and return passages;
our own command is timed beside them.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.yaml_file import read_mapping
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from bench import BenchError
from bench.arguments import BenchParser
from bench.replies.board import add_peers, check_peers, figure_of, own_costs
from bench.report.rows import Figure, Row, circumstances, corpus_of, show
from bench.ripgrep.manuals import plain, without_tags
from bench.workbench import kept_index, say

NAME = "lookup"
LOOKUPS = Path(__file__).with_name("lookups.yaml")
SIDES = ("keywords", "query", "typed")
_SUFFIXES = (".html", ".md")


class Answered(NamedTuple):
    """How a reply answers a lookup: in its text, or only in a passage that it names."""

    in_reply: bool
    in_passage: bool
    tokens: int
    milliseconds: float


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    parser.add_argument("manuals", type=Path, help="folder of the unpacked manuals")
    parser.add_default("--lookups", Path, LOOKUPS, "file of lookups")
    add_peers(parser)
    parser.add_kept_work("pages and their index", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    check_peers(options.peers)
    lookups = read_lookups(options.lookups, options.manuals)
    pages = options.work / "pages"
    _copy(options.manuals, pages)
    with open_index(kept_index(pages, options.work), search_timeout_s=None) as index:
        say(f"{len(lookups)} lookups")
        answers = {name: answered(index, name, lookup) for name, lookup in lookups.items()}
        run = circumstances(command, index.manifest)
        details = {"corpus": corpus_of(index.manifest)}
    for name, sides in answers.items():
        marks = ["reply" if of.in_reply else "passage" if of.in_passage else "-" for of in sides]
        tokens = "".join(f"{of.tokens:6,}" for of in sides)
        print(f"{''.join(f'{mark:8}' for mark in marks)}{tokens}  {name}")
    rows = [row for side, name in enumerate(SIDES) for row in _rows(name, answers, side)]
    kept = {name: [list(of) for of in sides] for name, sides in answers.items()}
    figures = [Figure(NAME, tuple(rows), {**details, **kept})]
    if options.peers:
        query = next(iter(lookups.values()))["keywords"]
        figures.append(Figure("ours", tuple(own_costs(pages, options.work, query)), {}))
        figures += [figure_of(name, pages, options.work, lookups) for name in options.peers]
    show(options.json, figures, run)
    return 0


def read_lookups(file: Path, manuals: Path) -> dict[str, dict[str, Any]]:
    """Read lookups by question. Raises BenchError for lookups that their pages do not answer."""
    content = read_mapping(file, "lookups", holds="question", allowed="questions")
    lookups = cast("dict[str, dict[str, Any]]", content)
    pages = {of["page"]: manuals / of["page"] for of in lookups.values()}
    texts = {
        page: plain(without_tags(path.read_text("utf-8"), " ")) if path.is_file() else ""
        for page, path in pages.items()
    }
    unanswered = [
        question
        for question, of in lookups.items()
        if not any(plain(text) in texts[of["page"]] for text in of["answers"])
    ]
    if unanswered:
        raise BenchError(
            f"{len(unanswered)} lookups have no answer on their pages: {' '.join(unanswered)}",
            where=str(manuals),
            do="Unpack the packages of Debian 12 that --help names.",
        )
    return lookups


def answered(index: Index, question: str, lookup: Mapping[str, Any]) -> tuple[Answered, ...]:
    """Ask a lookup by keywords, by its logical query and as a question, each in a conversation of
    its own."""
    tool = LogicalSearch(index, load_preset(DEFAULT_PRESET))
    wanted = [plain(text) for text in lookup["answers"]]
    given: list[Answered] = []
    for side in SIDES:
        began = time.process_time()
        result = tool.run({"query": lookup.get(side, question.rstrip("?"))})
        milliseconds = (time.process_time() - began) * 1000
        passages = [plain(of.content) for of in index.read(result.ids) if of is not None]
        in_reply = any(text in plain(result.text) for text in wanted)
        in_passage = any(text in passage for text in wanted for passage in passages)
        given.append(Answered(in_reply, in_passage, result.tokens, milliseconds))
    return tuple(given)


def _rows(name: str, answers: Mapping[str, Sequence[Answered]], side: int) -> list[Row]:
    """Return the counts and means of a side."""
    ours = [sides[side] for sides in answers.values()]
    left_out = sum(of.in_passage and not of.in_reply for of in ours)
    return [
        Row(f"{name}: answer in the reply", sum(of.in_reply for of in ours), f"of {len(ours)}"),
        Row(f"{name}: answer only in a passage of the reply", left_out, ""),
        Row(f"{name}: tokens of a reply", sum(of.tokens for of in ours) / len(ours), ""),
        Row(f"{name}: processor time", sum(of.milliseconds for of in ours) / len(ours), "ms"),
    ]


def _copy(manuals: Path, pages: Path) -> None:
    """Copy the pages that are files of their own."""
    shutil.rmtree(pages, ignore_errors=True)
    for path in sorted(manuals.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file() and not path.is_symlink():
            copy = pages / path.relative_to(manuals)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
