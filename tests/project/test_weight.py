"""Neither the packages nor their tests grow unseen: each has a ceiling of lines of Python, and the
top level has a fixed list of names.

A commit that needs more raises a ceiling by no more than its issue names, and its message says why.
One that takes lines away lowers it. ``python -m tests.project.test_weight`` prints the lines that
each room gained or lost since the commit before the one that last changed this file.
"""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CEILINGS = {("arag_search", "index_jobs"): 71_900, ("tests",): 75_000}

TOP = {"arag_search", "bench", "configs", "index_jobs", "opensearch", "tests", "pyproject.toml"}
TOP |= {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "TROUBLE.md"}


def git(*words: str) -> list[str]:
    """Return the lines that git prints about the sources in Python."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def changes_by_room() -> Counter[str]:
    """Return the lines that each room gained since the ceilings changed; a room is a folder in a
    package, in the bench or in the tests."""
    base = git("log", "-1", "--format=%H~1", "--", __file__)
    changes: Counter[str] = Counter()
    for line in git("diff", "--numstat", "--no-renames", *base, "--", "*.py"):
        added, removed, name = line.split("\t")
        changes["/".join(Path(name).parts[:-1][:2])] += int(added) - int(removed)
    return changes


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="counts what git tracks")
@pytest.mark.parametrize("folders", CEILINGS)
def test_the_lines_are_at_most_two_per_cent_below_their_ceiling_and_never_above(
    folders: tuple[str, ...],
) -> None:
    names = git("ls-files", *(f"{folder}/*.py" for folder in folders))
    count = sum((ROOT / name).read_bytes().count(b"\n") for name in names)
    assert count <= CEILINGS[folders] <= count * 1.02


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="lists what git tracks")
def test_nothing_is_added_at_the_top_level() -> None:
    names = {name.partition("/")[0] for name in git("ls-files")}
    assert {name for name in names if not name.startswith(".")} == TOP


if __name__ == "__main__":
    for room, lines in sorted(changes_by_room().items()):
        if lines:
            print(f"{lines:+6} {room}")
