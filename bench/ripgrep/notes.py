"""Made notes of projects, a file each, and needs whose answers stand in them. There are as many
notes as wanted, so that the cost of a search can be seen to grow. They are labelled as made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

from arag_search.system.yaml_file import read_mapping

IN_A_FOLDER = 1_000
PROJECTS = 1.3
"""Times the root of the number of notes: in a larger archive there are more names, and each occurs
more often (Heaps 1978)."""
_CHATS = 4


@cache
def texts() -> Mapping[str, Any]:
    """Return the texts of notes and needs."""
    file = Path(__file__).with_name("notes.yaml")
    return cast(Mapping[str, Any], read_mapping(file, "texts", holds="keys", allowed="its own"))


class Need(NamedTuple):
    """A question, and the sentences that answer it, all of which must have been read."""

    text: str
    evidence: tuple[str, ...]
    kind: str


def write_notes(folder: Path, count: int, seed: int) -> list[Need]:
    """Write ``count`` notes and return the needs that they answer, a fifth of them in two hops.
    The same seed writes the same bytes; nothing is kept but names and needs."""
    chance = Random(seed)
    names, facts = _invented(chance), texts()["facts"]
    second, workers = texts()["second"].split(), texts()["workers"].split()
    projects = [
        f"{next(names)} {chance.choice(second)}"
        for _ in range(max(1, round(PROJECTS * count**0.5)))
    ]
    suppliers = [(next(names), next(names)) for _ in projects]
    needs: list[Need] = []
    for number, drawn in enumerate(chance.sample(range(count), count)):
        place, project = divmod(drawn, len(projects))
        name, (company, town) = projects[project], suppliers[project]
        lines = [""]
        where = texts()["town"].format(c=company, t=town)
        if place < len(facts):
            what = list(facts)[place]
            value = company if what == "supplier" else _value(what, chance, names)
            sentence = chance.choice(facts[what]["says"]).format(p=name, v=value)
            hops = (sentence, where) if what == "supplier" else (sentence,)
            needs.append(Need(facts[what]["question"].format(p=name), hops, what))
            lines.append(sentence)
        elif place == len(facts):
            name = company
            lines.append(where)
        for _ in range(_CHATS):
            chat = chance.choice(texts()["chatter"]).format(
                p=chance.choice(projects), w=chance.choice(workers)
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
    beginnings, middles, ends = (texts()[of].split() for of in ("beginnings", "middles", "ends"))
    while True:
        parts = [chance.choice(beginnings), chance.choice(middles), chance.choice(ends)]
        if len(seen) > 4_000:
            parts.insert(1, chance.choice(middles) + chance.choice(ends))
        name = "".join(parts)
        if name not in seen:
            seen.add(name)
            yield name
