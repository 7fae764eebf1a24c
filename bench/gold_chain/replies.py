"""Replies of tools, as the policy sees them."""

from __future__ import annotations

from arag_search.tokens import count_tokens
from arag_search.tools.reply_text import is_refused, offers_more, passages_in
from bench.gold_chain.policy import Call, ReadCall, Reply, Shown


def reply_of(call: Call, text: str) -> Reply:
    """Convert the text of a result."""
    shown = tuple(
        Shown(passage.id, count_tokens(passage.title) + count_tokens(passage.text), passage.text)
        for passage in passages_in(text, of_read=isinstance(call, ReadCall))
    )
    refused = not shown and is_refused(text)
    return Reply(shown, offers_more(text), refused, count_tokens(text))
