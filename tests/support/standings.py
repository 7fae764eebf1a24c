"""How indexes stand beside their files, written as builds and watchers note it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from arag_search.search.standing import Standing, identity_of, note_standing, now

SECRET = "payroll.md"
LINE = f"3 files changed since, {SECRET} among these."
MISSING = "3 files are not in the index (2 pdf could not be read, 1 ipynb): arag-search info "


def note(location: str, *, changed: bool = True, **more: Any) -> Standing:
    """Note that an index is in step with its files, or that three changed, and that others could
    never be read."""
    standing = Standing(
        identity_of(location),
        in_step=now(),
        changed_files=3 if changed else 0,
        changed=(f"a/{SECRET}",) if changed else (),
        not_read={"pdf could not be read": 2, "ipynb": 1},
    )
    standing = replace(standing, **more)
    note_standing(standing)
    return standing
