"""The frame of the pages: their template, styles and scripts. Neither page loads anything from a
network or runs a script but its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import orjson

TEMPLATE = "page.html"
STYLE = "page.css"
SEARCH_STYLE = "search.css"
SHARED_SCRIPTS = ("elements.js", "texts.js", "frame.js")
SCRIPTS = (
    *SHARED_SCRIPTS,
    "plots.js",
    "measures.js",
    "table.js",
    "steps.js",
    "question.js",
    "app.js",
)
"""The scripts of the page of a run, joined in this order."""
SEARCH_SCRIPTS = (*SHARED_SCRIPTS, "search_panels.js", "search.js")
"""The scripts of the page to search by hand, loaded in this order."""
SEARCH_STYLES = (STYLE, SEARCH_STYLE)

RUN_KEYS = (
    (("j", "n"), "next question, in the order and choice of the table"),
    (("k", "p"), "previous question"),
    (("/",), "search the questions"),
    (("Esc",), "back to the table"),
    (("?",), "this list"),
)
SEARCH_KEYS = (
    (("/",), "the query"),
    (("j", "k"), "next and previous hit"),
    (("Enter",), "open the hit in the reader"),
    (("n", "p"), "next and previous match in the reader"),
    (("Esc",), "back to the hit"),
    (("?",), "this list"),
)
"""The keys of the pages, with what each does."""
GENERATOR = "arag-search view"
"""The generator that a page names."""
_ESCAPED = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def page(title: str, data: Mapping[str, Any]) -> bytes:
    """Return the page for the data, in UTF-8."""
    from markupsafe import Markup

    style = asset(STYLE)
    script = "\n".join(map(asset, SCRIPTS))
    return _rendered(
        title=title,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(json_in_html(data).decode()),
        keys=RUN_KEYS,
    )


def search_page() -> bytes:
    """Return the page to search by hand, in UTF-8. It loads its scripts and styles."""
    return _rendered(
        title="arag-search", scripts=SEARCH_SCRIPTS, styles=SEARCH_STYLES, keys=SEARCH_KEYS
    )


def _rendered(**values: Any) -> bytes:
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(asset(TEMPLATE))
    return template.render(generator=GENERATOR, **values).encode()


def is_page(beginning: bytes) -> bool:
    """Return whether a file with this beginning is a page of ours."""
    return f'<meta name="generator" content="{GENERATOR}">'.encode() in beginning


def json_in_html(data: Mapping[str, Any]) -> bytes:
    """Return JSON that is safe in a script element and in a line of JavaScript.

    Characters with a meaning there only occur in strings, and are escaped.
    """
    written = orjson.dumps(data)
    for character, escaped in _ESCAPED.items():
        written = written.replace(character, escaped)
    return written


def _policy(style: str, script: str) -> str:
    """Return a policy under which nothing is loaded; the one style and the one script are allowed
    by their hash."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def asset(name: str) -> str:
    """Return the text of a file of the assets."""
    return (files("arag_search.viewer") / "assets" / name).read_text(encoding="utf-8")
