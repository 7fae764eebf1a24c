"""Small English words, and the names between them."""

from __future__ import annotations

import re


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _listed(
    """a an the of in on at to for from by with as and or but than that this these those is are was
    were be been being do does did done has have had who whom whose which what when where why how
    it its his her their he she they them there both same either out not no s film films movie
    movies song songs one two other first later earlier which name named called also into during
    after before between while until because if so such more most many much year ever"""
)
"""Words that say nothing of what a passage is about."""

JOINS = _listed(
    """of the – — - de del della di da dos du des la le les el al von van der den af av ibn bin y
    mac ap no ul al- st. d' &"""
)
"""Small words that stand inside a name."""

NOT_NAMES = _listed(
    """a an the he she it they his her its their i we in on at of by for from to with as after
    before during since until when where while although this that these those there and or but
    if both who whom whose what which why how is are was were be do does did has have had can could
    will
    would may also however according despite following between among not no one two some many most
    all
    another other each such name out"""
)
"""Words that are capitalised only because a sentence begins with them."""

_POSSESSIVE = re.compile(r"['’]s?$")
_ENDS_OF_SPANS = ",;:?!"
_AROUND_WORDS = "\"'“”‘’«»().,;:?!"
_INSIDE_NAMES = JOINS | {"and", "for"}


def capitalised_spans(text: str) -> list[str]:
    """Return the runs of capitalised words, in order.

    Small words may stand inside a run ("Jump for Glory"); a first word that is capitalised only
    because a sentence begins with it does not count. A comma ends a run, and so do brackets.
    """
    runs: list[list[str]] = []
    joins: list[str] | None = None  # small words since the last capital; None: no open run
    for at, word in enumerate(text.split()):
        bare = word.strip(_AROUND_WORDS)
        begins = at == 0 and bare.casefold() in NOT_NAMES
        if word[:1] == "(":
            joins = None
        if bare[:1].isupper() and not begins:
            if joins is None:
                runs.append([])
            runs[-1] += [*(joins or ()), word]
            joins = []
        elif joins is not None and bare.casefold() in _INSIDE_NAMES:
            joins.append(word)
        else:
            joins = None
        if word[-1:] in _ENDS_OF_SPANS:
            joins = None
    return [span for run in runs if (span := _trimmed(" ".join(run)))]


def _trimmed(span: str) -> str:
    """Strip quotes, brackets, punctuation and a possessive 's; a full stop may be part of a
    name."""
    return _POSSESSIVE.sub("", span.strip(_AROUND_WORDS))
