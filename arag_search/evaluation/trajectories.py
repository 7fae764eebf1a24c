"""How a model searched: the overlap of consecutive searches, the call after a search without hits,
and its arguments. All of this is computed from the records alone. Only a model could say whether
two searches meant the same, and whether a search was a success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import cast

from arag_search.agent.record import Record, Step
from arag_search.search.asked import Asked
from arag_search.tools.registry import FOUND_BY_SEARCH, TOOLS

_SIZES = ("top_k", "max_results")
_QUERIES = ("query", "queries", "keywords")


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of the results of consecutive searches.

    Shared passages are divided by three numbers:

    - ``of_larger``: the passages of the larger result.
    - ``jaccard``: all passages of both.
    - ``of_asked``: the number of passages that the later search asked for.

    Each value is a mean over the ``pairs`` of which at least one found something; None if there is
    no pair. Pairs without hits, ``empty_pairs``, are counted apart. They would lower the means if
    counted as sharing nothing, and raise them if counted as sharing everything.
    """

    pairs: int
    empty_pairs: int
    of_larger: float | None
    jaccard: float | None
    of_asked: float | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovery from failed searches, which found nothing or were rejected.

    ``at_once`` counts those after which the next search found something, ``later`` those where a
    later one did, ``never`` the rest. ``searches`` is the mean number of searches from a failed one
    to the next that found something, None if none did. ``tokens`` counts the result tokens of
    failed searches, which the model read for nothing.
    """

    failed: int
    refused: int
    at_once: int
    later: int
    never: int
    searches: float | None
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The searches with a tool that were not refused, and how many of them gave each argument
    beside the query."""

    searches: int
    arguments: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Trajectories:
    """Overlap, recovery and use of each tool over all searches of some records."""

    records: int
    searches: int
    overlap: Overlap
    recovery: Recovery
    tools: Mapping[str, ToolUse]


def trajectories(records: Iterable[Record]) -> Trajectories:
    """Return how the models of these records searched; pairs never cross a question."""
    searches = [searches_of(record) for record in records]
    return Trajectories(
        records=len(searches),
        searches=sum(map(len, searches)),
        overlap=_overlap([pair for steps in searches for pair in pairwise(steps)]),
        recovery=_recovery(searches),
        tools=_tools([step for steps in searches for step in steps]),
    )


def searches_of(record: Record) -> list[Step]:
    """Return the steps that searched, in order; there may be reads between them."""
    return [step for step in record.trajectory if step.tool_name in FOUND_BY_SEARCH]


def is_search(step: Step) -> bool:
    """Return whether a step searched and was not refused; a tool of others counts as a search."""
    is_tool = step.tool_name in FOUND_BY_SEARCH or step.tool_name not in TOOLS
    return is_tool and step.status != "error"


def found_something(step: Step) -> bool:
    """Return whether a search showed a passage."""
    return step.status == "ok" and bool(step.hit_ids)


def arguments_of(step: Step) -> Mapping[str, object]:
    """Return the arguments of a tool call; nothing if that is not a JSON object."""
    written: object = step.tool_input
    return cast(Mapping[str, object], written) if isinstance(written, dict) else {}


def asked_for(step: Step) -> int:
    """Return how many passages a search asked for."""
    given = arguments_of(step)
    sizes = [size for name in _SIZES if isinstance(size := given.get(name), int) and size > 0]
    return sizes[0] if sizes else Asked().top_k


def _overlap(pairs: Sequence[tuple[Step, Step]]) -> Overlap:
    shown = [
        (set(previous.hit_ids), set(other.hit_ids), asked_for(other)) for previous, other in pairs
    ]
    some = [(previous, other, asked) for previous, other, asked in shown if previous or other]
    return Overlap(
        pairs=len(some),
        empty_pairs=len(shown) - len(some),
        of_larger=_mean(
            len(previous & other) / max(len(previous), len(other)) for previous, other, _ in some
        ),
        jaccard=_mean(len(previous & other) / len(previous | other) for previous, other, _ in some),
        of_asked=_mean(min(len(previous & other) / asked, 1.0) for previous, other, asked in some),
    )


def _recovery(searches: Sequence[Sequence[Step]]) -> Recovery:
    waits: list[int | None] = []
    failed: list[Step] = []
    for steps in searches:
        for position, step in enumerate(steps):
            if found_something(step):
                continue
            failed.append(step)
            later = (n for n, step in enumerate(steps[position + 1 :], 1) if found_something(step))
            waits.append(next(later, None))
    recovered = [wait for wait in waits if wait is not None]
    return Recovery(
        failed=len(failed),
        refused=sum(step.status == "error" for step in failed),
        at_once=sum(wait == 1 for wait in recovered),
        later=sum(wait > 1 for wait in recovered),
        never=len(waits) - len(recovered),
        searches=_mean(recovered),
        tokens=sum(step.result_tokens for step in failed),
    )


def _tools(steps: Sequence[Step]) -> dict[str, ToolUse]:
    uses: dict[str, ToolUse] = {}
    for name in sorted({step.tool_name for step in steps}):
        used = [step for step in steps if step.tool_name == name and step.status != "error"]
        given = Counter(argument for step in used for argument in arguments_of(step))
        beside = {argument: n for argument, n in given.items() if argument not in _QUERIES}
        uses[name] = ToolUse(len(used), beside)
    return uses


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None
