"""The tables of the guides: their rows of results, and the wording of each line.

A line whose file is missing is left out, and a table without lines names the command to run. A new
table is a function in ``TABLES``, and its mark in a document (see bench/guides/figures.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import orjson

from arag_search.system.progress import duration
from bench.report import markdown
from bench.report.rows import Kept, Row, shown_number
from bench.scale.searching import CLASSES
from bench.scale.sides import Measured

Table = Callable[[Kept], list[str]]
"""Returns the lines of a table, in Markdown."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a figure whose names contain ``part``, combined by the function ``of`` of their
    values."""

    figure: str
    part: str
    of: Callable[[Sequence[float]], float]

    def combined(self, kept: Kept) -> Row:
        """Return the combined row, with the target that the rows have in common."""
        rows = [row for row in kept.figure(self.figure).rows if self.part in row.what]
        return replace(rows[0], value=self.of([row.value for row in rows]), low=None, high=None)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table of speed.

    ``rows`` are names for ``Kept.row`` ("file/figure/what"), or several as one. ``measured`` is a
    format of them ("{0.value:.2f}"). The aims are the targets of the rows.
    """

    what: str
    measured: str
    rows: tuple[str | Rows, ...]

    def is_kept(self, kept: Kept) -> bool:
        """Return whether all rows of the line were measured."""
        figures = (names.figure if isinstance(names, Rows) else names for names in self.rows)
        return all(kept.has("/".join(name.split("/")[:2])) for name in figures)

    def text(self, kept: Kept) -> str:
        """Return the line in Markdown. Raises BenchError for a row that a file does not have."""
        rows = [row.combined(kept) if isinstance(row, Rows) else kept.row(row) for row in self.rows]
        return markdown.line([self.what, self.measured.format(*rows), _aims(rows)])


def _aims(rows: Sequence[Row]) -> str:
    """Return the targets of the rows in their order, or one if they are all the same."""
    units = {"": "", "x": ""}
    aims = [
        f"{row.target.value:,g} {units.get(row.unit, row.unit)}".strip()
        for row in rows
        if row.target is not None
    ]
    return aims[0] if len(set(aims)) == 1 else "; ".join(aims)


CLIENTS = ("1 client", "16 clients")

SPEED = (
    Line(
        "building an index, against a bare loop that adds ready documents",
        "{0.value:.2f}",
        ("efficiency/indexing/rate of ours to the bare loop (one document reused)",),
    ),
    Line(
        "building an index by a command, against Anserini's indexer (`bench efficiency anserini`):"
        " without sentences; with",
        "{0.value:.1f}; {1.value:.1f} times its time",
        (
            "efficiency/anserini/time of ours over Anserini, no sentences",
            "efficiency/anserini/time of ours over Anserini, sentences",
        ),
    ),
    *(
        Line(
            f"{what} (`bench speed`), 6,119 passages: 1 client; 16",
            "{0.value:.2f}; {1.value:.2f}",
            tuple(f"speed/rates, 6,119 passages/rate of {sides}, {of}" for of in CLIENTS),
        )
        for what, sides in (
            (
                "rate of recorded queries over bare Lucene, queries prebuilt",
                "ours over bare Lucene",
            ),
            ("rate of words over Pyserini", "ours, words over Pyserini"),
            ("rate of words over bm25s", "ours, words over bm25s"),
            ("`keyword_search` over A-RAG's scan", "keyword_search over A-RAG's scan"),
            (
                "rate on OpenSearch over its bare client, requests prebuilt",
                "ours on OpenSearch over bare OpenSearch",
            ),
        )
    ),
    Line(
        "a session by MCP, its processor time over that of bare Lucene (`bench speed`): start;"
        " first call; other calls; warm",
        "{0.value:.1f}; {1.value:.1f}; {2.value:.1f}; {3.value:.1f}",
        tuple(
            f"speed/session, 6,119 passages/mcp, {part}: time over bare Lucene"
            for part in ("start", "first call", "other calls", "warm")
        ),
    ),
    Line(
        "`offline` on 400 questions of 2WikiMultiHopQA (`bench offline`): evidence recall; one BM25"
        " query with the same tokens",
        "{0.value:.2f}; {1.value:.2f}",
        (
            "offline/2wikimultihopqa/evidence recall",
            "offline/2wikimultihopqa/recall of one BM25 query, same tokens",
        ),
    ),
    Line(
        "loading 100,000 passages into OpenSearch against `parallel_bulk` with ready actions"
        " (`bench opensearch_load`)",
        "{0.value:.2f} ({0.low:.2f} to {0.high:.2f})",
        ("opensearch_load/opensearch load/rate of ours to parallel_bulk",),
    ),
    *(
        Line(
            f"answers of OpenSearch, {nodes}, that differ from those of embedded Lucene"
            " (`bench parity`)",
            "{0.value:.0f} of {1.value:,.0f}",
            (
                Rows(f"parity/lucene, opensearch, {nodes}", "differ in", sum),
                f"parity/lucene, opensearch, {nodes}/queries run",
            ),
        )
        for nodes in ("1 node", "3 nodes")
    ),
    Line(
        "recall@10 of indexes of real sentences (`bench recall`): IVF-flat; IVF+PQ, rescored",
        "{0.value:.2f}; {1.value:.2f}",
        ("recall/IVF-flat/recall@10", "recall/IVF+PQ, rescored/recall@10"),
    ),
)


def speed(kept: Kept) -> list[str]:
    """Return the table of speed in README."""
    lines = [figure.text(kept) for figure in SPEED if figure.is_kept(kept)]
    return table(("figure", "measured", "aim"), lines, "speed")


def current(kept: Kept) -> list[str]:
    """Return the table of how soon an index follows its files."""
    lines = [
        markdown.line([name, row.what, f"{_with_range(row)} {row.unit}".strip(), _aims([row])])
        for name, figure in (kept.file("current").items() if kept.has("current") else ())
        for row in figure.rows
    ]
    return table(("figure", "what", "measured", "aim"), lines, "current")


def offline(kept: Kept) -> list[str]:
    """Return the table of what the rules of the offline model find, by data set."""
    lines: list[str] = []
    formats = {
        "evidence recall": ".2f",
        "recall of one BM25 query, same tokens": ".2f",
        "retrieved tokens a question": ".0f",
    }
    for name, title in (
        ("2wikimultihopqa", "2WikiMultiHopQA"),
        ("musique", "MuSiQue"),
        ("hotpotqa", "HotpotQA"),
    ):
        if kept.has(f"offline/{name}"):
            questions = kept.figure(f"offline/{name}").details["questions"]
            cells = (
                format(kept.row(f"offline/{name}/{measure}").value, form)
                for measure, form in formats.items()
            )
            lines.append(markdown.line([title, f"{questions:,}", *cells]))
    head = ("data set", "questions", "evidence recall", "of one BM25 query", "tokens of each")
    return table(head, lines, "offline")


def retrieval(kept: Kept) -> list[str]:
    """Return the table of single searches with the question, by data set and kind of search."""
    lines: list[str] = []
    measures = ("recall@5", "recall@20", "tokens@5", "tokens@20")
    if kept.has("retrieval"):
        rows_by_search: dict[str, dict[str, Row]] = {}
        for row in kept.figure("retrieval/retrieval").rows:
            what, measure = row.what.rsplit(", ", 1)
            rows_by_search.setdefault(what, {})[measure] = row
        for what, rows in rows_by_search.items():
            lines.append(
                markdown.line(
                    [*what.split(": "), *(_with_range(rows[measure]) for measure in measures)]
                )
            )
    return table(("data set", "search, or difference", *measures), lines, "retrieval")


def gold_chain(kept: Kept) -> list[str]:
    """Return the table of tokens to evidence and full evidence by passages, data set and interface:
    the main policy, and the range over all policies."""
    lines: list[str] = []
    measures = ("TokensToEvidence", "FullEvidence")
    if kept.has("gold_chain"):
        figure = kept.figure("gold_chain/gold_chain")
        rows = {(*_levels(row.what), row.what.rsplit(", ", 1)[1]): row for row in figure.rows}
        over = {
            (entry["data_set"], entry["passages"], entry["interface"], entry["measure"]): entry
            for entry in figure.details["over_policies"]
        }
        for at in dict.fromkeys(key[:3] for key in rows):
            cells = [
                cell
                for measure in measures
                for cell in (_with_range(rows[*at, measure]), _over(over[*at, measure]))
            ]
            lines.append(markdown.line([at[1], at[0], at[2], *cells]))
    head = ("T [95%]", "T over policies", "full evidence [95%]", "over policies")
    return table(
        ("passages", "data set", "interface", *head),
        lines,
        "ablate bench/suites/gold_chain.yaml",
    )


def gold_chain_claims(kept: Kept) -> list[str]:
    """Return the table of the claims about each pair of interfaces, by passages."""
    lines: list[str] = []
    passages: list[str] = []
    if kept.has("gold_chain"):
        claims = kept.figure("gold_chain/gold_chain").details["claims"]
        passages = list(dict.fromkeys(claim["passages"] for claim in claims))
        said: dict[str, list[str]] = {}
        for claim in claims:
            said.setdefault(f"{claim['first']} to {claim['second']}", []).append(_claim(claim))
        lines = [markdown.line([pair, *cells]) for pair, cells in said.items()]
    return table(("tokens to evidence", *passages), lines, "ablate bench/suites/gold_chain.yaml")


_RECORDED = ("ContainAcc", "EM", "F1", "RetrievedTokens")


def recorded(kept: Kept) -> list[str]:
    """Return the table of recorded runs beside what the papers state of their systems; the means of
    tokens are arithmetic, as theirs are."""
    lines: list[str] = []
    for name, figure in kept.file("recorded").items() if kept.has("recorded") else ():
        details = figure.details
        runs = details["suite"]["experiment"]["runs"]
        means = {
            (entry["data_set"], entry["run"], entry["measure"]): entry["value"]
            for entry in details["plain_means"]
        }
        values = {row.what: row.value for row in figure.rows}
        for set_name, run in product(details["suite"]["experiment"]["sets"], runs):
            label = run["label"]
            ours = (
                means.get((set_name, label, measure), values[f"{set_name}: {label}, {measure}"])
                for measure in _RECORDED
            )
            theirs = _of_papers(details["papers"], run["system"], set_name)
            lines.append(markdown.line([name, set_name, label, *map(shown_number, ours), theirs]))
    head = ("suite", "data set", "run", *_RECORDED, "the paper's figures, not measured here")
    return table(head, lines, "ablate bench/suites/recorded_arag.yaml")


def _of_papers(papers: Sequence[Mapping[str, Any]], system: str, set_name: str) -> str:
    """Return what papers state of a system on a data set, in their units; nothing if that is
    nothing."""
    stated: list[str] = []
    for paper in papers:
        by_measure: dict[str, list[str]] = {}
        for their_system, model, their_set, measure, value in paper["figures"]:
            if (their_system, their_set) == (system, set_name) and measure in _RECORDED:
                by_measure.setdefault(measure, []).append(f"{value:,g} ({model})")
        figures = "; ".join(f"{name} {', '.join(of)}" for name, of in by_measure.items())
        stated += [f"{paper['table']}: {figures}"] if figures else []
    return ". ".join(stated)


def manuals(kept: Kept) -> list[str]:
    """Return the table of searches over manuals and code, with a column for each measured state,
    "before" first; figures are called "COLUMN: PART"."""
    rows: dict[tuple[str, str], dict[str, Row]] = {}
    for name, figure in kept.file("manuals").items() if kept.has("manuals") else ():
        column, _, part = name.partition(": ")
        for row in figure.rows:
            rows.setdefault((part, row.what), {})[column] = row
    columns = sorted({column for of in rows.values() for column in of}, key=_before_first)
    lines = [
        markdown.line(
            [
                part,
                what,
                next((str(row.target) for row in of.values() if row.target is not None), ""),
                *(_in_unit(of[column]) if column in of else "" for column in columns),
            ]
        )
        for (part, what), of in rows.items()
    ]
    return table(("of", "measured", "aim", *columns), lines, "manuals")


def _before_first(column: str) -> tuple[bool, str]:
    return column != "before", column


def _in_unit(row: Row) -> str:
    """Return a value with its unit and its range."""
    spread = "" if row.low is None else f" [{shown_number(row.low)}, {shown_number(row.high or 0)}]"
    return f"{_value(row)} {row.unit}".strip() + spread


def _levels(what: str) -> tuple[str, str, str]:
    """Data set, passages and interface of a row of the gold chain."""
    set_name, levels = what.split(": ", 1)
    passages, _, interface, *_ = levels.split(", ")
    return set_name, passages, interface


def _over(entry: Mapping[str, Any]) -> str:
    return f"{shown_number(entry['least'])} to {shown_number(entry['most'])}"


def _claim(claim: Mapping[str, Any]) -> str:
    ahead = {"first": claim["first"], "second": claim["second"]}.get(claim["outcome"])
    said = (
        f"**{ahead} beats**" if ahead else claim["outcome"].replace("depends", "depends on policy")
    )
    low, high = (math.exp(claim[bound]) for bound in ("low", "high"))
    first, second = claim["resolved_for"]
    return (
        f"{said}: x {low:.2f} to x {high:.2f} (resolved {first} : {second} of {claim['policies']})"
    )


def growth(kept: Kept) -> list[str]:
    """Build the table of the rate of builds and of latency by engine and size, and of what KILT
    would take."""
    lines: list[str] = []
    for side, content in _grown(kept).items():
        for size in content.sizes:
            rate = f"{size.passages / size.build.seconds:,.0f}"
            spent = f"{size.build.processor_s / size.passages * 1000:.2f}"
            cells = [side, f"{size.passages:,}", rate, spent, *_latencies(size, 1)]
            lines.append(markdown.line(cells))
        if laws := content.laws:
            medians = (_with_interval(laws[f"{name}: median"]) for name in CLASSES)
            lines.append(markdown.line([side, _extrapolated(laws), "", "", *medians]))
    head = ("engine", "passages", "passages/s built", "processor ms a passage")
    return table((*head, *CLASSES), lines, "scale")


def growth_clients(kept: Kept) -> list[str]:
    """Build the table of the latency of four clients by engine and size."""
    lines = [
        markdown.line([side, f"{size.passages:,}", *_latencies(size, 4)])
        for side, content in _grown(kept).items()
        for size in content.sizes
    ]
    return table(("engine", "passages", *CLASSES), lines, "scale")


def growth_changes(kept: Kept) -> list[str]:
    """Build the table of the cost of changes by engine and size, and the worst query."""
    lines: list[str] = []
    for side, content in _grown(kept).items():
        for size in content.sizes:
            changes = [size.changes[name] for name in ("delete", "add", "compact")]
            worst = max(size.search.worst, key=lambda outcome: outcome.seconds)
            cells = [
                *(duration(change.seconds) for change in changes),
                *(_two_digits(change.bytes / 1e9) for change in changes),
                f"{_two_digits(worst.seconds)} s: {worst.name}",
            ]
            lines.append(markdown.line([side, f"{size.passages:,}", *cells]))
    head = ("deletion", "addition", "compaction", "GB after the first", "second", "third")
    return table(("engine", "passages", *head, "worst query"), lines, "scale")


def sizes(kept: Kept) -> list[str]:
    """Build the table of what a machine needs, by engine and size."""
    lines: list[str] = []
    for side, content in _grown(kept).items():
        for size in content.sizes:
            build, compact = size.build, size.changes["compact"]
            disks = (build.bytes, build.peak_disk, compact.peak_disk)
            cells = [
                duration(build.seconds),
                duration(build.processor_s),
                *(_two_digits(disk / 1e9) for disk in disks),
                *(_two_digits(most / 1e9) for most in (build.peak_bytes, size.search.peak_bytes)),
                f"{_two_digits(size.search.opening_s)} s",
            ]
            lines.append(markdown.line([side, f"{size.passages:,}", *cells]))
        if laws := content.laws:
            hours = (
                f"{_with_interval(laws[name])} h" for name in ("build", "build, processor time")
            )
            disks = ("index", "build, disk at most", "compaction, disk at most")
            shown = (_with_interval(laws[name]) if name in laws else "" for name in disks)
            cells = [*hours, *shown, "", _with_interval(laws["searches, memory at most"]), ""]
            lines.append(markdown.line([side, _extrapolated(laws), *cells]))
    head = ("build", "its processor time", "index, GB", "while built", "while compacted")
    memory = ("memory of a build, GB", "of searches", "opening")
    return table(("engine", "passages", *head, *memory), lines, "scale")


@dataclass(frozen=True, slots=True)
class _Grown:
    """The sizes of an engine, and the extrapolations by name."""

    sizes: Sequence[Measured]
    laws: Mapping[str, Any]


def _grown(kept: Kept) -> dict[str, _Grown]:
    path = kept.folder / "scale.json"
    content: dict[str, Any] = orjson.loads(path.read_bytes()) if path.exists() else {}
    return {
        side: _Grown([Measured.from_dict(size) for size in sizes], content["extrapolated"][side])
        for side, sizes in content.get("measured", {}).items()
    }


def _latencies(size: Measured, clients: int) -> list[str]:
    """Return the median and the 95th percentile of each class."""
    classes = size.search.latency[clients]
    both = ((classes[name].median_ms, classes[name].p95_ms) for name in CLASSES)
    return [" / ".join(map(_two_digits, pair)) for pair in both]


def _extrapolated(laws: Mapping[str, Any]) -> str:
    return f"{laws['build']['passages']:,}, extrapolated"


def _with_interval(law: Mapping[str, Any]) -> str:
    low, high = law["interval_95"]
    mark = " !" if law["bends"] or law["mostly_overhead"] else ""
    return f"{_two_digits(law['value'])} [{_two_digits(low)}, {_two_digits(high)}]{mark}"


def _two_digits(number: float) -> str:
    """Format a number with two significant digits, never with an exponent."""
    return f"{float(f'{number:.2g}'):g}"


def table(head: Sequence[str], lines: Sequence[str], command: str) -> list[str]:
    """Return a table with these lines; without lines, the command to run."""
    if not lines:
        return [f"Not measured yet: `python -m bench {command}`."]
    return [*markdown.head(head), *lines]


def _value(row: Row) -> str:
    return shown_number(row.value)


def _with_range(row: Row) -> str:
    if row.low is None or row.high is None:
        return _value(row)
    return f"{_value(row)} [{shown_number(row.low)}, {shown_number(row.high)}]"


TABLES: Mapping[str, Table] = {
    "speed": speed,
    "current": current,
    "offline": offline,
    "retrieval": retrieval,
    "gold chain": gold_chain,
    "gold chain claims": gold_chain_claims,
    "growth": growth,
    "recorded runs": recorded,
    "growth clients": growth_clients,
    "growth changes": growth_changes,
    "sizes": sizes,
    "manuals": manuals,
}
"""The tables by their name in the mark."""
