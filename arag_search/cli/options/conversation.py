"""The files of conversations: where they are kept, and the common code of commands that use
them."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arag_search.agent.conversation import SavedConversation

ENDING = ".json"
DOCUMENT_PRESET = "agentic_rag"
_SLUG = re.compile(r"[^a-z0-9]+")
_MAX_SLUG = 40


def conversations_folder() -> Path:
    """Return the folder of conversations: ``arag_search/conversations`` in XDG_DATA_HOME, or else
    in ``~/.local/share``."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "arag_search" / "conversations"


def conversation_file(given: str) -> Path:
    """Return the file for a name or a path: a bare name is in the folder of conversations, unless
    there is such a file here."""
    path = Path(given)
    if path.name != given or path.suffix == ENDING or path.exists():
        return path
    return conversations_folder() / f"{given}{ENDING}"


def new_file(question: str) -> Path:
    """Return the file for a new conversation, named after the time and its first question."""
    slug = _SLUG.sub("-", question.lower()).strip("-")[:_MAX_SLUG].strip("-") or "conversation"
    return conversations_folder() / f"{datetime.now():%Y-%m-%d-%H%M%S}-{slug}{ENDING}"


def usual_preset(saved: SavedConversation | None) -> str:
    """Return the preset of a conversation where none is named."""
    return DOCUMENT_PRESET if saved is None else saved.preset
