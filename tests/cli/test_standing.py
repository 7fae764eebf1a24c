"""Commands say how an index stands beside its files: replies and JSON on standard output."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from arag_search.cli.output.printing import with_state
from arag_search.search.standing import forget_standing
from arag_search.system.cache import cache_folder
from tests.support.commands import Command
from tests.support.standings import LINE, MISSING, SECRET, note

pytestmark = pytest.mark.usefixtures("commands_folder")

SCOPE = ("--filter", "kind:person")
ANSWERED = (
    ("search", "my-index", "vivaldi", "--explain"),
    ("search", "my-index", "vivaldi", "--tool", "keyword"),
    ("read", "my-index", "--document", "vivaldi"),
    ("read", "my-index", "vivaldi:1"),
    ("read", "my-index", "--all"),
    ("words", "my-index"),
    ("ask", "my-index", "Who was Antonio Vivaldi?", "--model", "offline"),
)
NOTHING = (
    ("search", "my-index", "zebra"),
    ("search", "my-index", "zebra", "--documents"),
    ("search", "my-index", "zebra", "--tool", "keyword"),
    ("words", "my-index", "zebra"),
    ("read", "my-index", "zebra.1"),
    ("read", "my-index", "--document", "zebra"),
)
UNKNOWN = ("ask", "my-index", "How tall is a zebra?", "--model", "offline")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    forget_standing("my-index")


@pytest.mark.parametrize("command", ANSWERED, ids=" ".join)
def test_a_reply_ends_with_the_line_only_where_files_have_changed(
    command: tuple[str, ...], arag: Command
) -> None:
    before = arag(*command).lines
    note("my-index", changed=False)
    in_step = arag(*command).lines
    note("my-index")
    *others, line = arag(*command).lines
    if command[0] == "ask":  # which takes other times
        assert len(others) == len(in_step) == len(before)
    else:
        assert others == in_step == before
    assert line.endswith(LINE)
    within = arag(*command, *SCOPE)
    assert within.lines[-1].endswith("; not since: see arag-search info.")
    assert SECRET not in within.out


def test_documents_to_index_have_their_state_beside_them(arag: Command) -> None:
    note("my-index")
    done = arag("read", "my-index", "--all", "--json")
    assert SECRET not in done.out
    assert done.err.splitlines()[-1].endswith(LINE)


def test_the_json_of_a_refused_query_has_the_state(arag: Command) -> None:
    note("my-index")
    assert arag("search", "my-index", "a OR (", "--json").json["state"]["changed_files"] == 3


@pytest.mark.parametrize("command", NOTHING, ids=" ".join)
def test_a_command_that_finds_nothing_counts_what_is_not_in_the_index(
    command: tuple[str, ...], arag: Command
) -> None:
    before = arag(*command)
    standing = note("my-index", changed=False)
    done = arag(*command)
    assert (before.code, done.code, done.err) == (1, 1, before.err)
    assert done.lines == [*before.lines, f"{MISSING}{standing.index}"]
    assert arag(*command, "--json").json["state"]["not_read"]["ipynb"] == 1
    assert MISSING not in arag(*command, *SCOPE).out


def test_an_answer_that_was_not_found_counts_what_is_not_in_the_index(arag: Command) -> None:
    standing = note("my-index", changed=False)
    assert arag(*UNKNOWN).lines[-1] == f"{MISSING}{standing.index}"


def test_an_index_that_cannot_follow_its_files_says_so(arag: Command) -> None:
    note("my-index", changed=False, problem="The synchronisation would delete most of them.")
    line = arag("search", "my-index", "vivaldi").lines[-1]
    assert line.endswith("; not since: see arag-search info.")


@pytest.mark.parametrize(
    ("slow", "problem", "end"),
    [
        (1, "", LINE + " The next search reads more; search --fresh reads all."),
        (3, "", LINE + " Reading takes long; search --fresh reads all."),
        (0, "Most are gone.", "; not since: see arag-search info."),
    ],
)
def test_the_line_of_a_folder_says_why_files_are_left_and_what_reads_them(
    slow: int, problem: str, end: str
) -> None:
    location = str(cache_folder() / "folders" / "x" / "index")
    standing = note(location, sources=(os.getcwd(),), slow_files=slow, problem=problem)
    forget_standing(location)
    assert with_state("A reply.", standing).splitlines()[1].endswith(end)
