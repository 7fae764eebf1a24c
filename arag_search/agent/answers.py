"""A model's last words -> short answer, explanation, cited ids, and what the citations are worth.

The prompts ask for three lines, ``Answer:``, ``Explanation:``, ``Sources:``. Models decorate them,
leave some out or change their order; what they wrote is kept as it is beside what is read from it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Citation = Literal["cited", "uncited", "wrong"]

NOT_FOUND = "not found in the corpus"
"""What the prompts ask for where the corpus does not hold the answer."""

_DECORATION = r"[ \t>#*_`-]*"
_LABEL = re.compile(
    rf"^{_DECORATION}(?:(?:the |my )?(?:final |short )?(?P<answer>answer)"
    r"|(?P<explanation>explanation|reasoning|rationale)"
    r"|(?P<sources>sources?|citations?|cited ids?|references))"
    r"[ \t*_`]*[:：][ \t*_`]*",
    re.IGNORECASE | re.MULTILINE,
)
_THINKING = re.compile(r"^.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_BRACKETS = re.compile(r"\[([^\[\]\n]+)\]")
_SEPARATORS = re.compile(r"[,;\n]")
_AND = re.compile(r" (?:and|&) ")
_NOTHING = frozenset({"", "none", "n/a", "na", "no", "no sources", "not applicable", NOT_FOUND})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a final reply says.

    ``raw`` is all of it. ``cited_ids`` are in the order in which they are named; ``wrong_ids`` are
    those of them that no tool had shown.
    """

    short: str
    explanation: str
    cited_ids: tuple[str, ...]
    wrong_ids: tuple[str, ...]
    raw: str

    @property
    def citation(self) -> Citation:
        """Whether it cites, and only what was shown."""
        if self.wrong_ids:
            return "wrong"
        return "cited" if self.cited_ids else "uncited"


def parse_answer(text: str, shown_ids: Collection[str] = ()) -> Answer:
    """Read a final reply. ``shown_ids`` are the chunks that tools have shown.

    Without an ``Answer:`` line the first paragraph is the answer; without an ``Explanation:`` line
    what stands before the first label, or follows the first paragraph, is the explanation. Ids are
    taken from the sources, and from brackets anywhere else where they name a chunk that was shown.
    """
    parts = _parts(_THINKING.sub("", text))
    shown = frozenset(shown_ids)
    body = f"{parts['answer']}\n{parts['explanation']}"
    inline = [one for one in _bracketed(body) if one in shown]
    cited = tuple(dict.fromkeys([*_listed(parts["sources"], shown), *inline]))
    return Answer(
        short=_short(parts["answer"], shown),
        explanation=parts["explanation"],
        cited_ids=cited,
        wrong_ids=tuple(one for one in cited if one not in shown),
        raw=text,
    )


def has_answer_line(text: str) -> bool:
    """Whether some line begins with ``Answer:``."""
    return any(found["answer"] for found in _LABEL.finditer(_THINKING.sub("", text)))


def _parts(text: str) -> dict[str, str]:
    """The text by label; of a label that comes twice, the last one."""
    labels = list(_LABEL.finditer(text))
    parts = {"answer": "", "explanation": "", "sources": ""}
    for at, found in enumerate(labels):
        end = labels[at + 1].start() if at + 1 < len(labels) else len(text)
        parts[found.lastgroup or ""] = text[found.end() : end].strip()
    before = (text[: labels[0].start()] if labels else text).strip()
    if not any(found["answer"] for found in labels):
        parts["answer"], _, before = before.partition("\n\n")
    parts["explanation"] = parts["explanation"] or before.strip()
    return parts


def _short(text: str, shown: frozenset[str]) -> str:
    """An answer without marks of emphasis and without the ids it cites."""
    without = _BRACKETS.sub(lambda found: "" if _ids_in(found[1]) & shown else found[0], text)
    return " ".join(without.strip().strip("*_`").split())


def _bracketed(text: str) -> list[str]:
    """What stands in brackets, cut at commas."""
    found: list[str] = []
    for one in _BRACKETS.finditer(text):
        pieces = (_bare(piece) for piece in _SEPARATORS.split(one[1]))
        found.extend([one[1].strip(), *pieces] if "," in one[1] else pieces)
    return [one for one in found if one]


def _ids_in(text: str) -> set[str]:
    return {text.strip(), *(_bare(piece) for piece in _SEPARATORS.split(text))}


def _listed(text: str, shown: frozenset[str]) -> list[str]:
    """The ids that a list of sources names, in its order.

    Ids that were shown are found wherever they stand; of the rest, what is in brackets, and what
    stands between commas where it is no title beside brackets, or is joined to a shown id by "and".
    """
    found: list[tuple[int, str]] = []
    for one in sorted((one for one in shown if one in text), key=len, reverse=True):
        for place in re.finditer(rf"(?<![\w./-]){re.escape(one)}(?![\w/-]|\.\w)", text):
            found.append((place.start(), one))
            text = text[: place.start()] + "\0" * len(one) + text[place.end() :]
    bracketed = "[" in text
    start = 0
    for piece in _SEPARATORS.split(text):
        inner = _BRACKETS.search(piece)
        bare = _bare(inner[1] if inner else piece)
        is_beside = bracketed and "[" not in piece and "]" not in piece and not _like_id(bare)
        if "\0" not in piece and not is_beside and bare.casefold() not in _NOTHING:
            found.append((start, bare))
        elif "\0" in piece and "(" not in piece:
            others = (one for one in _AND.split(piece) if "\0" not in one)
            ids = (one for one in others if "[" in one or not bracketed)
            found.extend(
                (start + piece.index(one), _bare(one)) for one in ids if _like_id(_bare(one))
            )
        start += len(piece) + 1
    return [one for _, one in sorted(found)]


def _like_id(text: str) -> bool:
    """Whether a text without brackets, among others with them, is an id and not a title."""
    return " " not in text and any(character.isdigit() for character in text)


def _bare(piece: str) -> str:
    """A piece of a list without bullets, quotes and full stop."""
    return piece.strip().strip("\"'`*•[]()<> ").removeprefix("- ").rstrip(".").strip()
