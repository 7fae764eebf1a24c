"""Made notes of projects, a file each, and needs whose answers stand in them: with as many notes as
wanted, so that the cost of a search can be seen to grow. They are labelled as made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

IN_A_FOLDER = 1_000
PROJECTS = 1.3
"""Times the root of the number of notes: in a larger archive there are more names, and each occurs
more often (Heaps 1978)."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_BEGINNINGS = _words(
    "Bal Cor Dun Fel Gar Hol Jor Kes Lun Mar Nel Orv Pel Quin Ros Sar Tol Ulv Ven Wil"
)
_MIDDLES = _words("a e i o u an en in on ar er or al el ast ent olf urn imb eck")
_ENDS = _words("ba dor fen gar hin ka lis mar nor pex ran sta tin vek wyn zan mond rick ton field")
_SECOND = _words("Bridge Gate Harbour Tide Orchard Signal Canyon Ledger Anchor Meadow")
_WORKERS = _words("Ada Ben Cleo Dan Eva Finn Gus Hana Ivo Jana Kim Leo Mia Nils Ola Pia")

FACTS = {
    "budget": ("The budget of {p} is {v} euros.", "{p} may spend {v} euros, not a cent more."),
    "venue": ("The venue of {p} is room {v}.", "We meet for {p} in room {v} from now on."),
    "owner": ("The owner of {p} is {v}.", "{v} answers for {p} as of this week."),
    "launch": ("The launch of {p} is planned for {v}.", "{p} goes live on {v}, if all goes well."),
    "supplier": ("The supplier of {p} is {v} Ltd.", "The parts of {p} come from {v} Ltd."),
}
"""What a note may say of a project, once for each: with the word that needs use, and without it."""
QUESTIONS = {
    "budget": "What is the budget of {p}?",
    "venue": "What is the venue of {p}?",
    "owner": "Who is the owner of {p}?",
    "launch": "When is the launch of {p}?",
    "supplier": "In which town is the supplier of {p} based?",
}
TOWN = "The works of {c} Ltd are in the town of {t}, a short ride from here."
_CHATTER = (
    "{w} asked how {p} is going, and nobody was sure.",
    "Compared with {p}, this went quickly.",
    "{w} will write to the team of {p} before Friday.",
    "We agreed to look at the numbers of {p} again next month.",
    "The plan for {p} was discussed, without a decision.",
)  # fmt: skip


_CHATS = 4


class Need(NamedTuple):
    """A question, and the sentences that answer it, all of which must have been read."""

    text: str
    evidence: tuple[str, ...]
    kind: str


def write_notes(folder: Path, count: int, seed: int) -> list[Need]:
    """Write ``count`` notes and return the needs that they answer, a fifth of them in two hops.
    The same seed writes the same bytes; nothing is kept but names and needs."""
    chance = Random(seed)
    names = _invented(chance)
    projects = [
        f"{next(names)} {chance.choice(_SECOND)}"
        for _ in range(max(1, round(PROJECTS * count**0.5)))
    ]
    suppliers = [(next(names), next(names)) for _ in projects]
    needs: list[Need] = []
    for number, drawn in enumerate(chance.sample(range(count), count)):
        place, project = divmod(drawn, len(projects))
        name, (company, town) = projects[project], suppliers[project]
        lines = [""]
        where = TOWN.format(c=company, t=town)
        if place < len(FACTS):
            what = list(FACTS)[place]
            value = company if what == "supplier" else _value(what, chance, names)
            sentence = chance.choice(FACTS[what]).format(p=name, v=value)
            hops = (sentence, where) if what == "supplier" else (sentence,)
            needs.append(Need(QUESTIONS[what].format(p=name), hops, what))
            lines.append(sentence)
        elif place == len(FACTS):
            name = company
            lines.append(where)
        for _ in range(_CHATS):
            chat = chance.choice(_CHATTER).format(
                p=chance.choice(projects), w=chance.choice(_WORKERS)
            )
            lines.insert(chance.randrange(len(lines)) + 1, chat)
        path = folder / f"{number // IN_A_FOLDER:04}" / f"{number:07}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([f"# Notes on {name}", *lines, ""]), "utf-8")
    return needs


def _value(what: str, chance: Random, names: Iterator[str]) -> str:
    if what == "budget":
        return f"{chance.randrange(20, 900) * 100:,}"
    if what == "venue":
        return f"{chance.choice('ABCDEF')}{chance.randrange(100, 999)}"
    if what == "launch":
        return f"{chance.randrange(1, 29)} May {chance.randrange(2031, 2060)}"
    return next(names)


def _invented(chance: Random) -> Iterator[str]:
    """Yield names of which none comes twice."""
    seen: set[str] = set()
    while True:
        parts = [chance.choice(_BEGINNINGS), chance.choice(_MIDDLES), chance.choice(_ENDS)]
        if len(seen) > 4_000:
            parts.insert(1, chance.choice(_MIDDLES) + chance.choice(_ENDS))
        name = "".join(parts)
        if name not in seen:
            seen.add(name)
            yield name
