"""Read a model's final reply: short answer, explanation, cited ids, and whether these are right.

The prompts ask for three lines, ``Answer:``, ``Explanation:``, ``Sources:``. Models decorate them,
leave some out or change their order; the original reply is kept beside the parsed parts.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from arag_search.agent.citations import CitedText, candidates
from arag_search.agent.scores import split_scores
from arag_search.corpus import nfc

Citation = Literal["cited", "uncited", "wrong"]

NOT_FOUND = "not found in the corpus"
"""The reply that the prompts ask for if the corpus does not hold the answer."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_IMPLIED = re.compile(r"[\s*_`]*\(implied\)\W*\Z", re.IGNORECASE)
"""The mark that the prompts ask for after an answer that passages imply."""
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_DECORATION = r"[ \t>#*_`-]*"
_LABEL = re.compile(
    rf"^{_DECORATION}(?:(?:the |my )?(?:final |short )?(?P<answer>answer)"
    r"|(?P<explanation>explanation|reasoning|rationale)"
    r"|(?P<sources>sources?|citations?|cited ids?|references))"
    r"[ \t*_`]*[:：][ \t*_`]*",
    re.IGNORECASE | re.MULTILINE,
)
_THINKING = re.compile(r"^.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)

Held = Callable[[Sequence[str]], Collection[str]]
"""A function that returns which of the given ids are ids of passages in the index."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of a final reply.

    ``raw`` is the whole reply. ``cited_ids`` are in the order in which the reply names them.
    ``wrong_ids`` were named although no tool had shown them: ids of existing passages, and
    ``invented_ids``, which no passage has and which do not count as citations. ``scores`` are those
    of the sources that have one.
    """

    short: str
    explanation: str
    cited_ids: tuple[str, ...]
    wrong_ids: tuple[str, ...]
    raw: str
    invented_ids: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def citation(self) -> Citation:
        """Whether the answer has citations, and cites only passages that were shown."""
        if self.wrong_ids:
            return "wrong"
        return "cited" if self.cited_ids else "uncited"


def parse_answer(
    text: str,
    shown_ids: Collection[str] = (),
    held: Held | None = None,
    *,
    scored: bool = False,
) -> Answer:
    """Read a final reply. ``shown_ids`` are the chunks that tools have shown; ``held`` says which
    other ids exist. Without ``held``, every id that was not shown counts as existing.

    Without an ``Answer:`` line the first paragraph is the answer; without an ``Explanation:`` line
    the text before the first label, or after the first paragraph, is the explanation. Ids are read
    in all three parts by one grammar (``CitedText``). With ``scored``, a number after a source is
    read as its score.
    """
    parts = _parts(_THINKING.sub("", text))
    scores: dict[str, float] = {}
    if scored:
        parts["sources"], scores = split_scores(parts["sources"])
    shown = frozenset(shown_ids)
    known = shown
    if held is not None and (others := candidates(_cited_texts(parts, known).values(), known)):
        known |= frozenset(held(others))
    texts = _cited_texts(parts, known)
    mentions = [mention for cited in texts.values() for mention in cited.mentions()]
    named = tuple(dict.fromkeys(mention.id for mention in mentions))
    invented = () if held is None else tuple(id for id in named if id not in known)
    return Answer(
        short=_short(texts["answer"].without_citations()),
        explanation=parts["explanation"],
        cited_ids=tuple(id for id in named if held is None or id in known),
        wrong_ids=tuple(id for id in named if id not in shown),
        raw=text,
        invented_ids=invented,
        scores=scores,
    )


def _cited_texts(parts: dict[str, str], known: Collection[str]) -> dict[str, CitedText]:
    """Return the parts of a reply, the sources first."""
    return {
        name: CitedText(parts[name], known, is_list=name == "sources")
        for name in ("sources", "answer", "explanation")
    }


def has_answer_line(text: str) -> bool:
    """Return whether some line begins with ``Answer:``."""
    return any(label["answer"] for label in _LABEL.finditer(_THINKING.sub("", text)))


def _parts(text: str) -> dict[str, str]:
    """Return the text by label; of a duplicate label, the last text."""
    labels = list(_LABEL.finditer(text))
    parts = {"answer": "", "explanation": "", "sources": ""}
    for at, label in enumerate(labels):
        end = labels[at + 1].start() if at + 1 < len(labels) else len(text)
        parts[label.lastgroup or ""] = text[label.end() : end].strip()
    before = (text[: labels[0].start()] if labels else text).strip()
    if not any(label["answer"] for label in labels):
        parts["answer"], _, before = before.partition("\n\n")
    parts["explanation"] = parts["explanation"] or before.strip()
    return parts


def _short(text: str) -> str:
    """Return an answer on one line, without emphasis markup and "(implied)"."""
    return " ".join(_IMPLIED.sub("", text.strip().strip("*_`")).split())


def normalise(text: str) -> str:
    """Return a text as answers are compared (SQuAD; Rajpurkar et al., 2016). The result is in lower
    case, without ASCII punctuation and the words a, an, the, and with single spaces. Text is
    brought to NFC first, so that an accent counts the same however it is written.
    """
    bare = nfc(text).lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())
