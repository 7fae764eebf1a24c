"""Questions to manuals and code, drawn by a seed, with what shows their answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

from arag_search.evaluation.bootstrap import SEED
from bench.quality.manual_readers import Question, Segments, names_in
from bench.quality.packages import Definition, Entry, key_of

SETTINGS, EXCLUSIONS, QUESTIONS = 60, 12, 60
RESTART = "only be set at server start"
_DEFAULT = re.compile(r"[^.]*\b[Tt]he default (?:value )?is\b.*?\.(?=\s|$)")
_TERM = re.compile(r"[\w.]+ \(\w+\)")
_BEGINNING = 60
"""The characters of a definition's text that show it."""

_Choice = TypeVar("_Choice")


def drawn(choices: Sequence[_Choice], count: int) -> list[_Choice]:
    """Draw as many of the choices, or all if there are fewer, by the seed."""
    return Random(SEED).sample(choices, min(count, len(choices)))


def default_questions(settings: Sequence[Entry]) -> list[Question]:
    """Draw settings whose text has a sentence with the default, and ask for it."""
    sentences = {entry: match[0] for entry in settings if (match := _DEFAULT.search(entry.body))}
    terms = {
        key_of(term): entry
        for entry in settings
        for term in _TERM.findall(entry.term) or [entry.term]
    }
    counts = Counter(map(key_of, sentences.values()))

    def question(entry: Entry) -> Question:
        sentence = key_of(sentences[entry])
        is_clear = counts[sentence] == 1

        def shown(segments: Segments) -> float:
            texts = map(key_of, segments)
            return any(is_below(sentence, entry, text, terms, is_clear) for text in texts)

        definition = rf"<dt.*>{re.escape(entry.name)}<"
        return Question("define", (entry.name,), entry.name, shown, definition)

    return [question(entry) for entry in drawn(list(sentences), SETTINGS)]


def is_below(
    sentence: str, entry: Entry, text: str, terms: Mapping[str, Entry], is_clear: bool
) -> bool:
    """Return whether a text shows a sentence as that of an entry: below its term, of all ``terms``
    the last one above, or with its name; or below no term, if no other entry has this sentence.
    All texts are keys."""
    at = text.find(sentence)
    while at >= 0:
        above = {term: text.rfind(term, 0, at) for term in terms if term in text[:at]}
        # wal_segment_size ends where segment_size ends
        nearest = max(above, key=lambda term: (above[term] + len(term), len(term)), default=None)
        if nearest is not None and terms[nearest] == entry:
            return True
        if is_clear and (nearest is None or key_of(entry.name) in sentence):
            return True
        at = text.find(sentence, at + 1)
    return False


def restart_question(entries: Sequence[Entry]) -> Question:
    """Ask for all settings that need a restart."""
    right = {entry.name for entry in entries if RESTART in entry.text}

    def shown(segments: Segments) -> float:
        return len(names_in(segments, right)) / len(right)

    return Question("list", (RESTART,), f'"{RESTART}"', shown)


def exclusion_questions(settings: Sequence[Entry]) -> list[Question]:
    """Draw pairs of words, and ask for the settings that have the first without the second: four
    to fifteen have the first, and a fifth to three fifths of these the second."""
    words = {entry.name: set(re.findall(r"\b[a-z]{5,}\b", entry.text)) for entry in settings}
    having: dict[str, set[str]] = {}
    for name, of in words.items():
        for word in of:
            having.setdefault(word, set()).add(name)
    first = sorted(word for word, names in having.items() if 4 <= len(names) <= 15)
    random = Random(SEED)
    questions: list[Question] = []
    for word in random.sample(first, len(first)):
        names = having[word]
        seconds = sorted(
            other
            for other in set().union(*(words[name] for name in names))
            if 0.2 <= len(having[other] & names) / len(names) <= 0.6
        )
        if seconds and len(questions) < EXCLUSIONS:
            other = random.choice(seconds)
            right = names - having[other]

            def shown(segments: Segments, right: frozenset[str] = frozenset(right)) -> float:
                return len(names_in(segments, right)) / len(right)

            questions.append(Question("exclude", (word, other), f"{word} NOT {other}", shown))
    return questions


def name_question(entry: Entry) -> Question:
    """Ask for the text of a qualified name."""
    definition = f'<dt[^>]*id="{re.escape(entry.id)}"'
    beginning = key_of(entry.body[:_BEGINNING])
    return Question("define", (entry.id,), entry.id, _having(beginning), definition)


def function_questions(functions: Sequence[Definition]) -> list[Question]:
    """Draw functions that have a docstring and are the only ones of their name, and ask for it."""
    counts = Counter(function.name for function in functions)
    documented = {
        function.name: key_of(function.docstring[:_BEGINNING])
        for function in functions
        if counts[function.name] == 1 and len(function.docstring) >= _BEGINNING
    }
    return [
        Question("define", (name,), name, _having(documented[name]), rf"def {name}\b")
        for name in drawn(sorted(documented), QUESTIONS)
    ]


def _having(key: str) -> Callable[[Segments], float]:
    return lambda segments: any(key in key_of(text) for text in segments)
