"""A page from its data: one file of HTML that loads nothing, and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import orjson

TEMPLATE = "page.html"
STYLE = "page.css"
SCRIPTS = (
    "elements.js",
    "texts.js",
    "plots.js",
    "measures.js",
    "table.js",
    "steps.js",
    "question.js",
    "app.js",
)
"""The scripts, joined in this order."""

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
    from jinja2 import Environment
    from markupsafe import Markup

    style = _read(STYLE)
    script = "\n".join(map(_read, SCRIPTS))
    template = Environment(autoescape=True).from_string(_read(TEMPLATE))
    return template.render(
        title=title,
        generator=GENERATOR,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(json_in_html(data).decode()),
    ).encode()


def is_page(beginning: bytes) -> bool:
    """Return whether a file with this beginning is a page of ours."""
    return f'<meta name="generator" content="{GENERATOR}">'.encode() in beginning


def json_in_html(data: Mapping[str, Any]) -> bytes:
    """Return JSON that is safe in a script element and in a line of JavaScript: characters with a
    meaning there only occur in strings, and are escaped."""
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


def _read(name: str) -> str:
    return (files("arag_search.viewer") / "assets" / name).read_text(encoding="utf-8")
