"""Names in the manuals of Debian packages find their entries, where the packages are installed."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from arag_search.search.opening import open_index
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.folders.selection import FileSelection

pytestmark = pytest.mark.long

PACKAGES = Path("/usr/share/doc")
SETTING = re.compile(r'<dt id="GUC-[^"]*">(.*?)</dt>\s*<dd>(.*?)</dd>', re.DOTALL)
DEFAULT = re.compile(r"[^.]*\b[Tt]he default (?:value )?is\b.*?\.(?=\s|$)", re.DOTALL)
NAME = re.compile(r'<dt class="sig[^>]* id="((?!c\.)[a-z]\w*(?:\.\w+)+)"')


def folder_with(page: str, package: str) -> Path:
    """Return the folder of a manual that has a page, or skip the test."""
    for path in sorted(PACKAGES.glob(f"{package}/**/{page}")):
        return path.parents[len(Path(page).parts) - 1]
    pytest.skip(f"no package {package} is installed")


def build(folder: Path, location: Path) -> Path:
    files = FileSelection(root=str(folder))
    build_index([str(folder)], location, BuildOptions(language="en", files=files))
    return location


def plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", "", html).split())


def key(text: str) -> str:
    """Return the words of a text without white space, which pages and passages have not alike."""
    return "".join(re.findall(r"\w+", text))


def test_the_first_reply_to_the_name_of_a_setting_shows_its_default(tmp_path: Path) -> None:
    folder = folder_with("runtime-config.html", "postgresql-doc-[0-9]*")
    defaults = {
        plain(term).split()[0]: default[0]
        for page in sorted(folder.glob("runtime-config-*.html"))
        for term, body in SETTING.findall(page.read_text("utf-8"))
        if (default := DEFAULT.search(plain(body)))
    }
    asked = Random(1741).sample(sorted(defaults), 60)
    with open_index(build(folder, tmp_path / "index")) as index:
        search = tools_of(load_preset(DEFAULT_PRESET), index)["logical_search"]
        replies = {name: search.run({"query": name}, ReadSet()).text for name in asked}
    missed = [name for name in asked if key(defaults[name]) not in key(replies[name])]
    assert len(missed) <= 6, missed


def test_a_qualified_name_finds_its_page_or_the_source_of_it(tmp_path: Path) -> None:
    folder = folder_with("library/subprocess.html", "python3*")
    pages = {
        name: page.relative_to(folder).as_posix()
        for page in sorted(folder.rglob("*.html"))
        for name in NAME.findall(page.read_text("utf-8"))
    }
    missed: list[str] = []
    with open_index(build(folder, tmp_path / "index")) as index:
        for name in Random(1741).sample(sorted(pages), 150):
            hits = index.logical_search(name, top_k=10, feedback=False).hits
            source = f"_sources/{pages[name].removesuffix('.html')}.rst.txt"
            if not {pages[name], source} & {hit.doc_id for hit in hits}:
                missed.append(name)
    assert len(missed) <= 10, missed
