"""A scripted agent: one policy for every tool, so that only the tools differ.

It looks for each name of the question beside the other words, then for the name alone. Then it goes
on to the names in the text that it read. It stops when it has read all words of the question, one
of them in a sentence with the name, or its calls are spent. It cannot judge an answer, which a
model can; a model would stop earlier, with either tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from arag_search.agent.models.offline import capitalised_spans
from arag_search.evaluation.interfaces import content_words
from arag_search.tokens import count_tokens

MAX_CALLS = 8
_FURTHER = 2  # names to go on to, of each search
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_IDENTIFIER = re.compile(r"\w+(?:[._]\w+)+")


@dataclass(slots=True)
class Reading:
    """The calls made for a question, and the texts of their replies with their tokens."""

    calls: int = 0
    tokens: int = 0
    texts: list[str] = field(default_factory=list[str])

    def call(self, run: Callable[[], str]) -> str:
        """Make a call, count it and its reply, and return the reply; calls beyond MAX_CALLS are
        not made and reply nothing."""
        if self.calls >= MAX_CALLS:
            return ""
        text = run()
        self.calls += 1
        self.tokens += count_tokens(text)
        self.texts.append(text)
        return text


class Hands(Protocol):
    """A tool in the hands of the agent. Each method makes one or more calls of a ``Reading``, and
    returns the most relevant text that it read."""

    def beside(self, name: str, words: Sequence[str], reading: Reading) -> str:
        """Look for a name beside one of the words."""
        ...

    def alone(self, name: str, reading: Reading) -> str:
        """Look for what is about a name."""
        ...

    def about(self, words: Sequence[str], reading: Reading) -> str:
        """Look for what has most of the words."""
        ...


def ask(hands: Hands, question: str) -> Reading:
    """Return what the agent reads for a question."""
    reading = Reading()
    names = _IDENTIFIER.findall(question) or capitalised_spans(question)
    in_names = set(content_words(" ".join(names)))
    words = [word for word in content_words(question) if word not in in_names]
    if not names:
        hands.about(words, reading)
        return reading
    known, read = set(names), ""
    while names and reading.calls < MAX_CALLS:
        name = names.pop(0)
        text = hands.beside(name, words, reading) if words else ""
        if not _tells(text, name, words) or _missing(words, read + text):
            text += hands.alone(name, reading)
        read += text
        if not _missing(words, read) and _tells(read, name, words):
            break
        further = [span for span in dict.fromkeys(capitalised_spans(text)) if span not in known]
        known.update(further)
        names += further[:_FURTHER]
    return reading


def _tells(text: str, name: str, words: Sequence[str]) -> bool:
    """Return whether a sentence has the name and, if there are words, one of them."""
    sentences = [
        part.casefold() for part in _SENTENCE.split(text) if name.casefold() in part.casefold()
    ]
    return any(not words or any(stem(word) in part for word in words) for part in sentences)


def _missing(words: Sequence[str], text: str) -> list[str]:
    return [word for word in words if stem(word) not in text.casefold()]


def stem(word: str) -> str:
    """Return the beginning of a word that its forms share, about."""
    return word[: max(4, len(word) - 2)]
