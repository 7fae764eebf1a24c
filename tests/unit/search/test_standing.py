"""How an index stands beside its files: in words, and from Python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.search.index import Index
from arag_search.search.standing import LINE_TOKENS, Standing
from arag_search.tokens import count_tokens
from tests.support.passages import VIVALDI, index_of
from tests.support.semantic_indexes import vector_index
from tests.support.standings import SECRET, note

WHEN = "2024-08-01T12:03:00+00:00"


@pytest.mark.parametrize(
    ("standing", "line"),
    [
        (Standing("i", in_step=WHEN), ""),
        (Standing("i", in_step=WHEN, changed_files=2, changed=("a/plan.md", "b.md")),
         "Index up to date as of Aug 1 2024; 2 files changed since, plan.md among these."),
        (Standing("i", in_step=WHEN, changed_files=2, changed=(f"{'long name ' * 9}.md",)),
         "Index up to date as of Aug 1 2024; 2 files changed since."),
        (Standing("i", in_step=WHEN, changed_files=2, problem="Most are gone."),
         "Index up to date as of Aug 1 2024; not since: see arag-search info."),
        (Standing("i", in_step=WHEN, not_compared=10_000_000),
         "Index up to date as of Aug 1 2024; not compared since: 10,000,000 files."),
        (Standing("i", in_step=WHEN, sources=("/nowhere/notes",)),
         "Index up to date as of Aug 1 2024; /nowhere/notes is gone."),
        (Standing("i", in_step=WHEN, sources=(f"/nowhere/{'long name ' * 9}/notes",)),
         "Index up to date as of Aug 1 2024; notes is gone."),
        (Standing("i", in_step=WHEN, sources=(f"/nowhere/{'long name ' * 9}",)),
         "Index up to date as of Aug 1 2024; its source is gone."),
    ],
)  # fmt: skip
def test_a_line_names_what_fits(standing: Standing, line: str) -> None:
    assert standing.line() == line
    assert standing.lines(is_absent=True) == [line][: len(line)]


@given(st.text(), st.integers(1, 999_999), st.text(), st.booleans())
def test_the_line_is_one_line_of_bounded_length_whatever_the_names(
    name: str, count: int, problem: str, is_gone: bool
) -> None:
    name = name.replace("\0", "")
    sources = (f"/nowhere/{name}/x{name}",) if is_gone else ()
    for changed in (count, 0):
        standing = Standing("i", sources, WHEN, changed, (name,), problem or "x")
        line = standing.line()
        assert count_tokens(line) <= LINE_TOKENS
        assert line.splitlines() == [line]


@pytest.mark.usefixtures("own_cache")
def test_a_search_by_vectors_knows_how_the_index_stands() -> None:
    index = vector_index(*VIVALDI)
    note(index.location)
    nothing = index.hybrid_search("opera", where="vivaldi AND nowhere")
    for result in (index.semantic_search("opera"), nothing):
        assert result.standing is not None
        assert result.standing.changed_files == 3


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("changed", [True, False])
def test_a_part_of_an_index_knows_no_name_and_no_number_of_files(changed: bool) -> None:
    whole = index_of(*VIVALDI)
    standing = note("memory", changed=changed, left_out=(f"1 pdf: {SECRET}",))
    parts: list[Index] = [whole.within("lang:en"), index_of(*VIVALDI, scope="lang:en")]
    states = [part.standing for part in parts]
    states += [part.logical_search("nowhere").standing for part in parts]
    states.append(whole.logical_search("vivaldi", filter="lang:en").standing)
    for known in states:
        assert known is not None
        assert known == standing.within_scope()
        assert known.lines(is_absent=True) == ([known.line()] if changed else [])
        assert SECRET not in str(known.to_dict())
        assert known.to_dict()["changed_files"] == 0
