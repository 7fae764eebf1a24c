"""Agreement of verdicts with human labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.errors import QuestionsError
from arag_search.evaluation.judging.judge import VERDICTS, Verdict, as_verdict
from arag_search.questions.record import Fields, parsed_lines, read_bytes

_ALLOWED = f'JSON lines of {{"question_id", "label"}}, a label being {", ".join(VERDICTS)}'


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two raters on the answers that both have rated.

    ``accuracy`` is the share of equal verdicts, ``kappa`` is Cohen's kappa, the agreement beyond
    chance, given how often each rater gives each verdict. Both are None if there is nothing to
    compare; kappa is also None if raters would agree on all answers by chance alone.
    """

    answers: int
    accuracy: float | None
    kappa: float | None


def agreement(verdicts: Mapping[str, Verdict | None], labels: Mapping[str, Verdict]) -> Agreement:
    """Compare verdicts with labels, by question id; a question that only one of them has rated
    is left out."""
    pairs: list[tuple[Verdict, Verdict]] = [
        (verdict, labels[id]) for id, verdict in verdicts.items() if verdict and id in labels
    ]
    if not pairs:
        return Agreement(0, None, None)
    equal = sum(verdict == other for verdict, other in pairs) / len(pairs)
    by_chance = _chance(pairs)
    kappa = None if by_chance == 1 else (equal - by_chance) / (1 - by_chance)
    return Agreement(len(pairs), equal, kappa)


def read_labels(path: Path) -> dict[str, Verdict]:
    """Return labels by question id. Raises QuestionsError naming file and line."""
    labels: dict[str, Verdict] = {}
    raw = read_bytes(path, "The labels cannot be read", _ALLOWED)
    for where, value in parsed_lines(raw, path, _ALLOWED):
        fields = Fields.of(value, where, _ALLOWED)
        fields.check((("question_id", "id"), ("label",)), _ALLOWED)
        id, label = fields.id(("question_id", "id")), fields.text("label")
        verdict = as_verdict(label)
        if verdict is None:
            raise fields.wrong("label", ", ".join(VERDICTS))
        if id in labels:
            raise QuestionsError(
                f'The answer to "{id}" is labelled twice.', where=where, do="Keep one label."
            )
        labels[id] = verdict
    if not labels:
        raise QuestionsError("There are no labels.", where=str(path), allowed=_ALLOWED)
    return labels


def _chance(pairs: Sequence[tuple[Verdict, Verdict]]) -> float:
    """Return the expected agreement of raters who give these verdicts independently of each
    other."""
    first, other = (Counter(pair[rater] for pair in pairs) for rater in (0, 1))
    return sum(first[name] * other[name] for name in VERDICTS) / len(pairs) ** 2
