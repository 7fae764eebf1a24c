"""The progress of a build, which checkpoints store, and the reports of builds and updates."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from arag_search.errors import MissingExtraError, NotInTimeError
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.system.progress import counted, duration
from index_jobs.cutting.counts import Counts
from index_jobs.sources.converters.registry import EXTRA, file_type_of
from index_jobs.sources.folders.selection import NOT_READ, TOO_LARGE
from index_jobs.sources.metadata import MISFIT
from index_jobs.sources.source import SHOWN_EXAMPLES, Position, Unread

SHOWN_FIELDS = 20
"""How many new fields a report names in words."""

CHECKPOINT_VERSION = 8
"""The version of BuildState. A build interrupted under another version cannot be resumed."""


@dataclass(slots=True)
class BuildState:
    """The progress of a build: the counts of what is written, where reading resumes, and the
    seconds spent."""

    counts: Counts
    position: Position = field(default_factory=Position)
    seconds: float = 0.0

    def take(self, counts: Counts, position: Position) -> None:
        """Count a batch that was written; ``position`` is the reading position after it."""
        self.counts.include(counts)
        self.position = position

    def join(self, block: BuildState, place: Mapping[str, int]) -> None:
        """Count a block that another process has counted from zero; ``place`` is where reading
        resumes after it."""
        self.counts.include(block.counts)
        self.position = replace(self.position.joined(block.position), **place)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> BuildState:
        values: dict[str, Any] = json.loads(text)
        position = Position(**values["position"])
        return BuildState(Counts.from_json(values["counts"]), position, values["seconds"])


class Report:
    """A dataclass that a command prints in words or as JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold; sources are objects with name and
        format."""
        values: dict[str, Any] = dataclasses.asdict(cast("Any", self))
        if isinstance(sources := values.get("sources"), tuple):
            pairs = cast("tuple[tuple[str, str], ...]", sources)
            values["sources"] = [{"name": name, "format": kind} for name, kind in pairs]
        return values

    def to_text(self) -> str:
        """Return the report in words, one line for each item."""
        raise NotImplementedError

    def warnings(self) -> list[str]:
        """Return what was left out or looks like a mistake, one line for each item."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport(Report):
    """A report on an index, as it is after ``seconds`` of work."""

    location: str
    documents: int
    chunks: int
    sentences: int
    tokens: int
    fingerprint: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesReport(IndexReport):
    """A report on sources that were read, of which something may have been left out.

    ``skipped_file_examples`` has the first KEPT_FILES bad files, and ``large_files`` the first
    SHOWN_LARGE_FILES that were too large. ``unread`` is as in Position. ``front_fields`` are the
    fields that the index gets from keys of front matter.
    """

    sources: tuple[tuple[str, str], ...]
    left_out: Mapping[str, int]
    undeclared_metadata: Mapping[str, int]
    skipped_lines: int
    skipped_examples: tuple[str, ...]
    skipped_files: int
    skipped_file_examples: tuple[str, ...]
    large_files: tuple[str, ...]
    unread: Unread
    front_fields: Mapping[str, MetadataType]

    def read_lines(self) -> list[str]:
        """Return the sources and the fields that their front matter adds, one line for each."""
        sources = [f"{name}: {kind}" for name, kind in self.sources]
        fields = [f"{name} ({kind})" for name, kind in self.front_fields.items()]
        new = [f"new fields, from front matter: {_first(fields, SHOWN_FIELDS)}"] if fields else []
        return [*_lines(sources), *new]

    def warnings(self) -> list[str]:
        """Return what was left out, one line for each item, and the command that reads the rest."""
        lines = self.left_out_lines()
        if NotInTimeError.kind in self.unread:
            names = [name for name, _ in self.sources]
            again = shlex.join(["arag-search", "sync", self.location, *names, "--skip-bad-files"])
            lines.append(f"to read them, with the options of this command: {again}")
        return lines

    def left_out_lines(self) -> list[str]:
        """Return what was left out of an index, one line for each item."""
        lines: list[str] = []
        if self.left_out:
            lines += [f"left out: {words}" for words in left_out_kinds(self.left_out)]
            if self.large_files:
                lines += _lines(self.large_files, self.left_out.get(TOO_LARGE, 0), "  ")
                lines.append("  read larger files with `max_file_size`")
        if self.undeclared_metadata:
            names = listed(self.undeclared_metadata, True)
            lines.append(f"not kept as fields, because `metadata` does not declare them: {names}")
        if self.skipped_lines:
            lines.append(f"skipped: {counted(self.skipped_lines, 'bad record')}")
            lines += _lines(self.skipped_examples, self.skipped_lines, "  ")
        if self.skipped_files:
            lines.append(f"skipped: {counted(self.skipped_files, 'bad file')}")
            lines += _lines(self.skipped_file_examples, self.skipped_files, "  ")
        return [*lines, *unread_lines(self.unread)]


@dataclass(frozen=True, slots=True)
class BuildReport(SourcesReport):
    """The result of a build: the index and its sources, the speed, and what was left out.

    ``sources`` has the name and the format of each source. ``seconds`` includes the runs before a
    resume; ``run_seconds`` and ``documents_per_second`` are of this run only. ``continued`` is the
    number of documents written by earlier runs; ``why`` says why this run resumed or started over.
    ``rejected`` counts documents that a server rejected and that were sent again, and ``retries``
    repeated requests. Both are of this run, and 0 for a local index.
    """

    generation: str
    run_seconds: float
    documents_per_second: float
    continued: int
    why: str
    workers: int
    rejected: int
    retries: int
    notes: tuple[str, ...]

    def to_text(self) -> str:
        """Return the report in words, one line for each item."""
        lines = [
            f"Built {self.location}: {counted(self.documents, 'document')} in"
            f" {counted(self.chunks, 'passage')}, {counted(self.sentences, 'sentence')},"
            f" {counted(self.tokens, 'token')}; {duration(self.run_seconds)},"
            f" {self.documents_per_second:,.0f} documents/s."
        ]
        lines += self.read_lines()
        if self.rejected or self.retries:
            lines.append(
                f"the server was busy: {counted(self.rejected, 'document')} rejected and"
                f" sent again, {counted(self.retries, 'request')} retried"
            )
        return "\n".join([*lines, *self.warnings()])

    def warnings(self) -> list[str]:
        """Return what was left out or looks like a mistake, one line for each item."""
        return [*SourcesReport.warnings(self), *self.notes]


@dataclass(frozen=True, slots=True)
class AddReport(SourcesReport):
    """The documents added, replaced, left alone and deleted, their sources, and the index
    afterwards.

    ``kept`` counts the documents that a source no longer shows, but that may be in a part of it
    that could not be read. ``others`` counts, in a synchronisation, the documents of the index that
    came from other sources, by source. An empty name stands for unknown sources. ``changes`` has
    the ids of a ``dry_run``, by "added", "replaced" and "deleted". ``finished_before`` is true if
    the same command had already done this before it was interrupted. ``rebuild`` is the command of
    a new build; it is empty if the index has records of a program. ``vectors`` says in words
    whether the vectors of the index fit it. Empty: there are none.
    """

    rebuild: str
    added: int
    replaced: int
    unchanged: int
    deleted: int
    kept: int
    others: Mapping[str, int]
    dry_run: bool
    changes: Mapping[str, Sequence[str]]
    finished_before: bool
    vectors: str
    update: int
    documents_per_second: float

    @property
    def has_changes(self) -> bool:
        """Whether a document was added, replaced or deleted."""
        return bool(self.added or self.replaced or self.deleted)

    def to_text(self) -> str:
        """Return the report in words, one line for each item."""
        counts = f"{counted(self.added, 'document')} added, {self.replaced:,} replaced"
        for count, what in ((self.unchanged, "unchanged"), (self.deleted, "deleted")):
            counts += f", {count:,} {what}" if count else ""
        holds = f"{counted(self.documents, 'document')} in {counted(self.chunks, 'passage')}"
        if self.dry_run:
            lines = [f"Would update {self.location}: {counts}; it would hold {holds}."]
            lines += [f"{what}: {shown_ids(ids)}" for what, ids in self.changes.items() if ids]
        else:
            verb = "Updated" if self.has_changes else "Left as it was:"
            lines = [
                f"{verb} {self.location}: {counts}; it holds {holds}; {duration(self.seconds)},"
                f" {self.documents_per_second:,.0f} documents/s."
            ]
        lines += self.read_lines()
        if self.kept:
            lines.append(
                f"kept: {counted(self.kept, 'document')} that may be in what could not be read"
            )
        for name, count in list(self.others.items())[:SHOWN_EXAMPLES]:
            source = name or "sources that the index does not know"
            lines.append(f"left alone: {counted(count, 'document')} of {source}")
        if self.finished_before:
            lines.append("An earlier run of the same command had already done this.")
        if (self.replaced or self.deleted) and not self.dry_run:
            lines.append(
                "scores differ a little from a new build until:"
                f" arag-search compact {self.location}"
            )
        if self.vectors:
            lines.append(self.vectors)
        return "\n".join([*lines, *self.warnings()])

    def warnings(self) -> list[str]:
        """Return what was left out, and what to do if values do not fit their fields."""
        lines = SourcesReport.warnings(self)
        if any(MISFIT in kind for kind in self.unread):
            what = "a field gets another type only in a new build, where `metadata` can set it"
            lines.append(f"{what}: {self.rebuild}" if self.rebuild else what)
        return lines


def index_counts(manifest: Manifest) -> dict[str, Any]:
    """Return the fields with which a report describes an index."""
    names = ("documents", "chunks", "sentences", "tokens", "fingerprint")
    return {name: getattr(manifest, name) for name in names}


def _lines(examples: Sequence[str], count: int = 0, indent: str = "") -> list[str]:
    """Return a line for each of the first examples, and the number of the others."""
    lines = [f"{indent}{example}" for example in examples[:SHOWN_EXAMPLES]]
    more = max(count, len(examples)) - len(lines)
    return [*lines, f"{indent}... and {more:,} more"] if more > 0 else lines


def _first(names: Sequence[str], most: int = 10) -> str:
    """Return the first names, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def unread_lines(unread: Unread) -> list[str]:
    """Return a line for each kind of what was not read, with the first ids."""
    return [
        f"{kind}: {count:,} ({', '.join(ids)}{', ...' if count > len(ids) else ''})"
        for kind, (count, *ids) in sorted(unread.items())
    ]


def left_out_kinds(left_out: Mapping[str, int]) -> list[str]:
    """Describe what is left out of folders: files that an extra would read, files that no converter
    reads, and the rest."""
    types = {name: file_type_of(f"x{name}") for name in left_out if name not in NOT_READ}
    unread = {name: left_out[name] for name, type in types.items() if type is None}
    extra = {name: left_out[name] for name, type in types.items() if type is not None}
    others = {name: count for name, count in left_out.items() if name in NOT_READ}
    lines = [f"{listed(extra)} ({_how_to_read(extra)})"] if extra else []
    lines += [f"{listed(unread)} (not read; `include` reads text)"] if unread else []
    return [*lines, *([listed(others, True)] if others else [])]


def _how_to_read(endings: Iterable[str]) -> str:
    """Return how to install the extra that reads files with these endings."""
    for ending in endings:
        try:
            if (type := file_type_of(f"x{ending}")) is not None:
                type.check()
        except MissingExtraError as error:
            return f'the extra "{EXTRA}" reads them. {error.do}'
    return "not plain text; `format=files` reads them"


def listed(counts: Mapping[str, int], names_first: bool = False) -> str:
    """Return the ten greatest counts in words: ``3 .pdf, 1 .html`` or ``author (3), x (1)``."""
    order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return _first(
        [f"{name} ({count:,})" if names_first else f"{count:,} {name}" for name, count in order]
    )


def shown_ids(doc_ids: Sequence[str]) -> str:
    """Return the first ten ids in quotes, and the number of the others."""
    return _first([f'"{doc_id[:60]}"' for doc_id in doc_ids])
