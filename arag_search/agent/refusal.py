"""Refusals: answers that say that there is no answer."""

from __future__ import annotations

import re

from arag_search.agent.answers import normalise

_CONTRACTED = "couldnt|cant|dont|doesnt|didnt|isnt|wasnt|arent|werent|hasnt|havent"
_NOT = (
    "found|find|determined?|answer(?:ed)?|know|known|say|tell|have|available|mention(?:ed)?"
    "|stated?|given?|provided?|specif(?:y|ied)|contain(?:ed)?"
    "|present|appear|in (?:the )?(?:corpus|passages|documents)"
)
_REFUSAL = re.compile(
    r"(?:(?:the|this|that|an?|i|we|it|there|they|sorry|unfortunately|answer|information|question"
    r"|corpus|passages?|documents?|sources?|text|is|was|were|are|could|can|does|do|did|has|have) )*"
    rf"(?:(?:(?:not|cannot|{_CONTRACTED}) (?:be )?(?:{_NOT})\b"
    r"|unable to\b|insufficient\b|not enough\b"
    r"|(?:no|isnt any|is not any) (?:answer|information|evidence|relevant|mention)\b)"
    r"|(?:unknown|none|na|unanswerable)$)"
)
_CONTRAST = re.compile(r"\b(?<!nothing )(?<!anything )(?:but|however)\b")
_QUOTES = str.maketrans("’‘ʼ“”„«»", '\'\'\'"""""')


def is_refusal(answer: str) -> bool:
    """Return whether a short answer says that there is no answer.

    An answer is a refusal if it is empty, or if it begins with words such as "not found in the
    corpus", "cannot be determined" or "no information" and does not give an answer later, as "not
    mentioned in the corpus, but Paris" does.
    """
    rest = normalise(answer.translate(_QUOTES))
    while rest:
        refusal = _REFUSAL.match(rest)
        if refusal is None:
            return False
        contrast = _CONTRAST.search(rest, refusal.end())
        rest = "" if contrast is None else rest[contrast.end() :].strip()
    return True
