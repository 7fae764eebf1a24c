"""CHANGELOG.md has the version of the project, in items of one line that are read at once."""

import re
import tomllib

from tests.support.guides import ROOT, guide_text

WORDS = 25
"""The most words of an item."""


def test_the_newest_release_is_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    newest, *_ = re.findall(r"^## (\d\S*)", guide_text("CHANGELOG.md"), re.MULTILINE)
    assert newest == project["version"]


def test_an_item_is_one_short_line_that_begins_with_its_area() -> None:
    lines = guide_text("CHANGELOG.md").partition("\n## ")[2].splitlines()[1:]
    items = [line for line in lines if line and not line.startswith("## ")]
    assert [line for line in items if not re.match(r"- [A-Z][\w ]*: ", line)] == []
    assert [line for line in items if len(line.split()) - 1 > WORDS] == []
