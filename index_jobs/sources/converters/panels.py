"""Panels of web pages: hidden elements that a reader opens. A tab, a button, a link to a note, or
the search of the browser opens them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_ROLES = frozenset("tabpanel doc-footnote doc-endnote doc-endnotes note definition".split())  # noqa: SIM905
_NOTES = frozenset(
    "footnote footnotes endnote endnotes rearnote rearnotes note annotation sidebar".split()  # noqa: SIM905
)
_NO_PANELS = frozenset("menu menubar listbox dialog alertdialog navigation tooltip".split())  # noqa: SIM905
_TARGETS = ("aria-controls", "data-target", "data-bs-target", "onclick", "href")
_CONTROLS = ", ".join(f"[{name}]" for name in _TARGETS[:-1]) + ', a[href^="j"], a[href^="#"]'
_CONTROL_CHARACTERS = 1_000
_ID = re.compile(r"[\w:.-]+")
_LINKED_SHARE = 0.8
"""A panel of whose text at least this share is in links leads to other pages."""


class Panels:
    """The panels of the page below an element."""

    def __init__(self, root: LexborNode | None) -> None:
        self._root = root

    def opens(self, node: LexborNode, attributes: Mapping[str, str | None]) -> bool:
        """Return whether a reader can open a hidden element."""
        role = attributes.get("role") or ""
        if role in _NO_PANELS or node.tag in ("dialog", "nav"):
            return False
        kinds = (attributes.get("epub:type") or "").split()
        return (
            attributes.get("hidden") == "until-found"
            or role in _ROLES
            or not _NOTES.isdisjoint(kinds)
            or ((attributes.get("id") or "") in self._controlled and not _leads_away(node))
        )

    @cached_property
    def _controlled(self) -> frozenset[str]:
        """The ids to which controls and links of the page lead."""
        controls = self._root.css(_CONTROLS) if self._root is not None else []
        values = (
            (node.attributes.get(name) or "")[:_CONTROL_CHARACTERS]
            for node in controls
            for name in _TARGETS
            if node.attributes.get("aria-haspopup") in (None, "false")
        )
        return frozenset(_ID.findall(" ".join(values)))


def _leads_away(node: LexborNode) -> bool:
    linked = sum(len(link.text().strip()) for link in node.css("a[href]"))
    return linked > 0 and linked >= _LINKED_SHARE * len(" ".join(node.text().split()))
