"""Take the picture of the viewer for README in a real browser.

    python -m bench viewer_picture

The picture shows a question of the sample corpus as the offline model answers it. Chromium must be
installed, and Playwright (group dev), which drives it.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.agent.models.choose import choose_model
from arag_search.agent.presets import load_preset
from arag_search.questions.files import load_questions
from arag_search.runs.run import RunOptions, run
from arag_search.search.index import open_index
from arag_search.system.durable import write_atomically
from arag_search.viewer.view import view
from bench import RESULTS_FOLDER, BenchError
from bench.arguments import BenchParser
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PICTURE = RESULTS_FOLDER / "viewer.png"
PRESET = "logical_read"
QUESTION = "s01"
SIZE = (1280, 800)


def main(arguments: Sequence[str]) -> int:
    """Write the picture and return the exit code."""
    return BenchParser("viewer_picture", __doc__).run(arguments, _written)


def _written(_options: argparse.Namespace, _command: str) -> int:
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        write_atomically(PICTURE, picture(browser, sample_page(Path(folder))))
    print(PICTURE)
    return 0


def sample_page(folder: Path) -> Path:
    """Build the page of a run over the sample corpus in an empty folder."""
    preset = load_preset(PRESET)
    with as_file(files("arag_search") / "sample") as sample:
        build_index([str(sample / "corpus.jsonl")], folder / "index", BuildOptions())
        questions = load_questions(sample / "questions.jsonl")
        options = RunOptions(questions_file=str(sample / "questions.jsonl"))
        model = choose_model("offline", preset=preset)
        with open_index(folder / "index", search_timeout_s=None) as index:
            run(index, questions, preset, model, folder / "run", options=options)
            made = view([folder / "run"], index=index)
    made.write(folder / "view.html")
    return folder / "view.html"


@contextmanager
def open_browser() -> Generator[Browser]:
    """Open the system's browser. Raises BenchError if it, or Playwright, is not installed."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise BenchError(
            "Playwright is not installed.", do="Run uv sync --inexact --group dev."
        ) from error
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise BenchError("Chromium is not installed.", do="Run apt-get install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        yield browser
        browser.close()


def picture(browser: Browser, page: Path) -> bytes:
    """Take a picture of a question in the browser, as PNG."""
    width, height = SIZE
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    tab.goto(f"{page.as_uri()}#/question/{QUESTION}")
    made = tab.screenshot()
    tab.close()
    return made
