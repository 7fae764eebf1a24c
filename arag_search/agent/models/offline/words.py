"""Lists of small English words."""

from __future__ import annotations


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

RANKS = _listed(
    """king queen prince princess emperor empress duke duchess archduke archduchess grand count
    countess earl baron baroness viscount marquess marquis margrave landgrave dauphin elector lord
    lady infante infanta caliph sultan shah tsar pope bishop crown holy roman"""
)
"""Words of rank, which go on with a name after its comma ("Robert II, Count of Dreux")."""

HONORIFICS = RANKS - _listed("lord lady") | _listed("kings queens emperors sir dame")
"""Words of rank that stand before a name and are no part of it."""

ABBREVIATIONS = _listed(
    "dr mr mrs ms st jr sr lt col gen capt sgt rev hon prof inc ltd co no vs vol op"
)
"""Words whose stop does not end a sentence."""

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
