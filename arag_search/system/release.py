"""The code that runs: the commit that it is of, and a digest of its sources."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).parents[1] / "commit.txt"
"""The file in which a build (.ci/hatch_build.py) writes the commit that it was made of."""
SOURCES = {"arag_search": (".py", ".java", ".md", ".yaml"), "index_jobs": (".py",)}


def git(*words: str) -> str | None:
    """Run git in this checkout and return its output, or None if it fails or prints nothing."""
    try:
        done = subprocess.run(
            ("git", *words), cwd=ROOT, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


@cache
def commit() -> str | None:
    """Return the commit of this code, None if it is unknown: neither built from a checkout nor in
    one of its own."""
    if WRITTEN.is_file():
        return WRITTEN.read_text("utf-8").strip()
    return git("rev-parse", "--verify", "HEAD") if (ROOT / ".git").exists() else None


def digest_of(root: Path, sources: Mapping[str, tuple[str, ...]]) -> str:
    """Hash the files in folders of ``root`` that have one of their endings, but for guides."""
    digest = hashlib.sha256()
    for folder, endings in sources.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in endings and path.name != "README.md":
                content = path.read_bytes()
                name = path.relative_to(root).as_posix()
                digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


@cache
def sources() -> str:
    """Return the digest of the sources of the package as they are, committed or not."""
    return digest_of(ROOT, SOURCES)
