"""Folders leave out the files that git itself ignores."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from index_jobs.sources.folders.listing import FolderListing, LeftOut
from index_jobs.sources.folders.selection import USUAL_FILES
from tests.support.corpus_files import in_own_folder  # noqa: F401
from tests.support.examples import examples

NAMES = ["a", "7", "b", "ab", "a.log", "b.txt", "c d", "é.txt"]
PATTERNS = (
    *("a", "b/", "/a", "*.log", "a/b", "a/**", "**/b", "a/**/b", "/*", "*", "**", "**/", "*/", "?"),
    *("!a", "!b/", "!*", "!*.log", "!a/b", "!/a/", "!*/", "!/*/", "!a/*", "!b.txt", "!**/b"),
    *("[ab].*", "[!a]*", "[a-b", "[[:digit:]]*", "![[:alpha:]7]", "a*/", "*b*/", "a/*/b", "a**b"),
    *("# x", "\\#x", "\\!x", "c\\ d", "c d ", "é*"),
)
ROUNDS = examples(400)
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def listed(folder: str) -> list[str]:
    listing = FolderListing(folder, USUAL_FILES.rooted([folder]))
    return [file.relative for file in listing(LeftOut())]


@needs_git
def test_git_ignores_the_same_files() -> None:
    chance = random.Random(7)
    for round_number in range(ROUNDS):
        root = Path(f"r{round_number}")
        folders = [root]
        for _ in range(5):
            folders.append(chance.choice(folders) / chance.choice(NAMES))
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        for folder in folders:
            for name in NAMES:
                if not (folder / name).exists():
                    (folder / name).write_text("")
            if folder == root or chance.random() < 0.4:
                lines = chance.choices(PATTERNS, k=chance.randint(1, 5))
                (folder / ".gitignore").write_text("\n".join(lines))
        run = ["git", "-c", "core.excludesFile=", "-c", "core.quotePath=false"]
        subprocess.run([*run, "init", "-q", str(root)], check=True)
        others = ["ls-files", "--others", "--exclude-standard", "-z"]
        not_ignored = subprocess.run(
            [*run, *others], cwd=root, check=True, capture_output=True, text=True
        ).stdout.split("\0")
        expected = [path for path in not_ignored if path and not path.endswith(".gitignore")]
        rules = {str(path): path.read_text() for path in root.rglob(".gitignore")}
        assert sorted(listed(str(root))) == sorted(expected), rules


@needs_git
def test_the_excludes_of_a_repository_are_those_of_its_working_trees() -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run([*git, "init", "-q", "main"], check=True)
    subprocess.run([*git, "-C", "main", "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "-C", "main", "worktree", "add", "-q", "../other"], check=True)
    Path("main/.git/info/exclude").write_text("secret.txt\n")
    Path("other/secret.txt").write_text("")
    Path("other/shown.txt").write_text("")
    assert listed("other") == ["shown.txt"]
