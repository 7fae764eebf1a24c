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
"""Joined in this order."""

GENERATOR = "arag-search view"
"""What a page says that it is made by."""
_ESCAPED = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def page(title: str, data: Mapping[str, Any]) -> bytes:
    """The page that shows the data, in UTF-8."""
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
    """Whether a file that begins so was made here."""
    return f'<meta name="generator" content="{GENERATOR}">'.encode() in beginning


def json_in_html(data: Mapping[str, Any]) -> bytes:
    """JSON that can stand in a script element, and in a line of JavaScript, whatever it holds: the
    characters that mean something there stand in strings only, and are escaped."""
    written = orjson.dumps(data)
    for character, escaped in _ESCAPED.items():
        written = written.replace(character, escaped)
    return written


def _policy(style: str, script: str) -> str:
    """Nothing is loaded; the one style and the one script are known by their hash."""
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
