"""The HTML manuals of Debian packages, and needs over them: the default of a setting of PostgreSQL,
and what a name of Python does. A need is asked by the name and by words of its first sentence."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from arag_search.evaluation.interfaces import content_words
from bench.ripgrep.notes import Need

_ENTRY = re.compile(
    r'<dt[^>]*\bid="([\w.-]+)"[^>]*>(?:(?!<dt).)*?</dt>\s*<dd>(.*?)</dd>', re.DOTALL
)
_TAG = re.compile(r"<[^>]*>")
_SENTENCE = re.compile(r".*?[.](?=\s|$)", re.DOTALL)
_DEFAULT = re.compile(r"[^.]*\b[Tt]he default (?:value )?is\b.*?[.](?=\s|$)", re.DOTALL)
_DESCRIBED = 5
_INDEXES = ("bookindex", "index", "genindex")


def postgresql_needs(folder: Path, count: int, seed: int) -> list[Need]:
    """Return needs for defaults of drawn settings; ``folder`` holds runtime-config-*.html."""
    needs = [
        Need(
            f"What is the default of {id[4:].lower().replace('-', '_')}?", (default[0],), "by name"
        )
        for id, text in _entries(sorted(folder.glob("runtime-config-*.html")))
        if id.startswith("GUC-") and (default := _DEFAULT.search(text))
    ]
    return Random(seed).sample(needs, min(count, len(needs)))


def python_needs(folder: Path, count: int, seed: int) -> list[Need]:
    """Return needs for drawn names of the library, half by name, half by words of their first
    sentence; ``folder`` holds the pages."""
    chance = Random(seed)
    firsts = {
        id: first[0]
        for id, text in _entries(sorted(folder.glob("*.html")))
        if "." in id and (first := _SENTENCE.match(text)) and len(first[0].split()) >= 8
    }
    needs: list[Need] = []
    for number, id in enumerate(chance.sample(sorted(firsts), min(count, len(firsts)))):
        first = firsts[id]
        if number % 2:
            words = sorted(
                chance.sample(words := content_words(first), min(_DESCRIBED, len(words)))
            )
            needs.append(Need(f"What is there for {' '.join(words)}?", (first,), "by description"))
        else:
            needs.append(Need(f"What does {id} do?", (first,), "by name"))
    return needs


def copy_pages(pages: Path, folder: Path) -> None:
    """Copy the pages as they are, but no page that lists all others."""
    folder.mkdir(parents=True)
    for page in sorted(pages.glob("*.html")):
        if page.stem not in _INDEXES:
            shutil.copy(page, folder)


def _entries(pages: list[Path]) -> Iterator[tuple[str, str]]:
    for page in pages:
        for id, body in _ENTRY.findall(page.read_text("utf-8")):
            yield id, " ".join(without_tags(body).split())


def without_tags(page: str, instead: str = "") -> str:
    """Return the text of a page, with something else in place of each tag."""
    return html.unescape(_TAG.sub(instead, page))


def plain(text: str) -> str:
    """Return the letters and digits of a text, in lower case and with single blanks."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()
