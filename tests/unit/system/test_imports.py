import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from arag_search.system.imports import import_building_late, import_without

WEB = """
LOG.append("web")
class Page:
    title = "a page"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of the path with the package ``pages.web``."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = dict(sys.modules)
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/__init__.py").write_text("LOG = []\n", "utf-8")
    (tmp_path / "pages/web.py").write_text(f"from pages import LOG\n{WEB}", "utf-8")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tmp_path
    for name in set(sys.modules) - set(before):
        if name.split(".")[0] in ("pages", "server"):
            del sys.modules[name]


def test_a_name_of_an_unread_package_is_read_when_it_is_used(folder: Path) -> None:
    server = "from pages.web import Page\ndef show(page: Page | None = None) -> Page | None: ...\n"
    (folder / "server.py").write_text(server, "utf-8")
    import_without("server", "pages.web")
    module, pages = importlib.import_module("server"), importlib.import_module("pages")
    assert pages.LOG == []

    page = module.Page()
    assert pages.LOG == ["web"]
    assert page.title == "a page"
    assert isinstance(page, module.Page)
    assert module.Page is not importlib.import_module("pages.web").Page  # stands for it
    assert type(page) is importlib.import_module("pages.web").Page
    assert str(module.show.__annotations__["page"])


@pytest.mark.parametrize(
    "line",
    [
        "class Mine(Page): ...",
        "assert Page.title == 'a page'",
        "assert issubclass(type(Page()), Page)",
        "def page() -> 'Page': ...\nimport typing; typing.get_type_hints(page)['return'].title",
        "from dataclasses import dataclass\n@dataclass\nclass Shown(Page):\n    page: Page",
    ],
)
def test_a_module_that_uses_the_names_while_it_is_imported_gets_them(
    folder: Path, line: str
) -> None:
    (folder / "server.py").write_text(f"from pages.web import Page\n{line}\n", "utf-8")
    import_without("server", "pages.web")
    assert importlib.import_module("pages").LOG == ["web"]


def test_a_package_that_is_imported_already_is_left_alone(folder: Path) -> None:
    (folder / "server.py").write_text("from pages.web import Page\n", "utf-8")
    web = importlib.import_module("pages.web")
    import_without("server", "pages.web")
    assert importlib.import_module("server").Page is web.Page


def test_models_are_built_when_they_are_first_used(folder: Path) -> None:
    (folder / "pages/models.py").write_text(
        "from pydantic import BaseModel\nclass Page(BaseModel):\n    title: str\n", "utf-8"
    )
    import_building_late("pages.models")
    page = importlib.import_module("pages.models").Page
    assert not page.__pydantic_complete__
    assert page(title="a").title == "a"
    assert page.__pydantic_complete__

    class Model(BaseModel):
        pass

    assert Model.__pydantic_complete__
