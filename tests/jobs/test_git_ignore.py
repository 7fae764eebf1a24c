"""Folders leave out the files that git itself ignores."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from index_jobs.sources.selection import folder_entries
from tests.support.corpus_files import in_own_folder  # noqa: F401

NAMES = ["a", "b", "ab", "a.log", "b.txt", "c d", "é.txt"]
PATTERNS = [
    *("a", "b/", "/a", "*.log", "!*.log", "a/b", "a/**", "**/b", "a/**/b", "!a/b", "/*", "!/a/"),
    *(
        "*",
        "!*/",
        "[ab].*",
        "!b.txt",
        "a*/",
        "# x",
        "\\#x",
        "c\\ d",
        "c d ",
        "?",
        "é*",
        "a/*",
        "!/b",
    ),
]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_ignores_the_same_files() -> None:
    chance = random.Random(7)
    for round_number in range(25):
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
        ours = ["ls-files", "--others", "--exclude-standard", "-z"]
        not_ignored = subprocess.run(
            [*run, *ours], cwd=root, check=True, capture_output=True, text=True
        ).stdout.split("\0")
        expected = [path for path in not_ignored if path and not path.endswith(".gitignore")]
        rules = {str(path): path.read_text() for path in root.rglob(".gitignore")}
        entries = folder_entries(str(root), root)
        read = [entry.relative for entry in entries if not entry.left_out]
        assert sorted(read) == sorted(expected), rules
