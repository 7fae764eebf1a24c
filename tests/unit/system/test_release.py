"""The commit of the code: as a build wrote it, of the checkout, or unknown without an error."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from arag_search.system import release

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    release.commit.cache_clear()
    yield
    release.commit.cache_clear()


def test_a_build_says_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "WRITTEN", tmp_path / "commit.txt")
    (tmp_path / "commit.txt").write_text("abc\n")
    assert release.commit() == "abc"


def test_without_git_or_a_checkout_the_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert release.commit() is None
    (tmp_path / ".git").mkdir()
    release.commit.cache_clear()
    assert release.commit() is None  # an empty folder is no repository
    monkeypatch.setenv("PATH", str(tmp_path))
    release.commit.cache_clear()
    assert release.commit() is None


def test_the_hook_of_builds_is_in_images_and_source_archives() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    hook = build["hooks"]["custom"]["path"]
    assert (ROOT / hook).is_file()
    assert hook in build["targets"]["sdist"]["include"]
    assert f"!{hook}" in (ROOT / ".dockerignore").read_text("utf-8").splitlines()


def test_the_citation_has_the_version_of_the_project_and_names_no_machine() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    cited = yaml.safe_load(text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]
    assert cited["abstract"] == project["description"]
    assert {"cff-version", "message", "title", "authors", "date-released"} <= cited.keys()
    assert not re.search(r"/(?:home|root|work|tmp|Users)\b|@", text)
