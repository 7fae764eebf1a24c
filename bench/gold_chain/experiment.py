"""The gold-chain agent under all levels of its factors, as an experiment that suites measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast, get_args

from arag_search.agent.loop import Agent
from arag_search.questions.files import Question, load_questions, questions_fingerprint
from arag_search.vectors.base import Encoder
from arag_search.vectors.encoders.choose import open_encoder
from bench import BenchError
from bench.ablation.cells import CellRow, Folders, Key
from bench.ablation.suite import GoldChain
from bench.gold_chain.ground import UNRESOLVED, Ground, check_chains, open_ground
from bench.gold_chain.model import GoldChainModel
from bench.gold_chain.names import Names
from bench.gold_chain.outcome import half_of, row_of
from bench.gold_chain.policy import ORDERS, POLICY_VERSION, REPLIES, ReplyLevel, Setting
from bench.gold_chain.queries import INTERFACES, LOGICAL, Interface, wordings
from bench.gold_chain.searcher import Searcher, preset_of
from bench.quality.data_sets import drawn
from bench.quality.packed import Packing
from bench.report.fingerprints import code_fingerprint
from bench.workbench import say

NAMES: tuple[Names, ...] = get_args(Names)
SEED = 1
"""The seed of the words that are dropped from names."""
AUDITED = 2
"""The number of questions of every cell that the agent answers as well, step by step."""
BY_VECTORS: tuple[Interface, ...] = ("semantic", "hybrid")

_ORDER = ("set", "passages", "reply", "interface", "title", "names", "order")
_LEVELS: Mapping[str, Sequence[str]] = {
    "interface": INTERFACES,
    "order": tuple(ORDERS),
    "names": NAMES,
    "title": ("off", "on"),
    "reply": REPLIES,
}


@dataclass(slots=True)
class _Open:
    """The open ground of one data set and packing, and the searcher of one interface over it."""

    at: tuple[str, str]
    ground: Ground
    searcher: Searcher | None = None


class GoldChainExperiment:
    """An Experiment. ``limit`` takes fewer questions of each data set, drawn by a seed.

    Raises BenchError for unknown levels, and for questions without a chain.
    """

    def __init__(self, chosen: GoldChain, folders: Folders, *, limit: int | None = None) -> None:
        self._chosen = chosen
        self._folders = folders
        self._limit = limit
        self._open: _Open | None = None
        self._encoder: Encoder | None = None
        _check_levels(chosen)
        self._questions = {name: self._asked(name) for name in chosen.sets}

    @property
    def keys(self) -> Sequence[Key]:
        """See Experiment. Conditions that an interface does not support are left out: ``title:``
        without fields or titles, and snippets of hybrid_search."""
        factors = self._chosen.factors
        levels = product(*(factors[name] for name in _ORDER))
        keys = (dict(zip(_ORDER, combination, strict=True)) for combination in levels)
        return [key for key in keys if _applies(key)]

    def fingerprints(self, key: Key) -> Mapping[str, str]:
        ground = self._ground(key)
        setting = _setting(key)
        preset = preset_of(setting.interface, setting.reply)
        agent = Agent(ground.index, preset, GoldChainModel({}, setting))
        asked = [asked.question for asked in ground.asked]
        return {
            **agent.fingerprints,
            "questions": questions_fingerprint(asked),
            "policy": POLICY_VERSION,
            "seed": str(SEED),
            "code": code_fingerprint(),
        }

    def measure(self, key: Key) -> Iterable[CellRow]:
        """See Experiment. The agent answers some questions too; raises BenchError if its steps
        differ."""
        searcher = self._searcher(key)
        setting = _setting(key)
        names = cast(Names, key["names"])
        audited = _audited(key, len(self._ground(key).asked))
        rows: list[CellRow] = []
        for number, asked in enumerate(self._ground(key).asked):
            chain = asked.chain(names, SEED)
            if number in audited:
                searcher.audit(chain, setting)
            hops = searcher.walk(chain, setting)
            rows.append(row_of(asked.question.id, asked.question.type, SEED, hops))
        return rows

    def close(self) -> None:
        self._close_ground()
        if self._encoder is not None:
            self._encoder.close()
            self._encoder = None

    def _asked(self, name: str) -> Sequence[Question]:
        everything = load_questions(self._folders.questions(name))
        check_chains(everything, name)
        half = self._chosen.half
        of_half = [question for question in everything if half in ("all", half_of(question.id))]
        return drawn(of_half, self._limit, name)

    def _ground(self, key: Key) -> Ground:
        """Open the ground of a key and close any other."""
        at = (key["set"], key["passages"])
        if self._open is None or self._open.at != at:
            self._close_ground()
            name, passages = at
            ground = open_ground(
                self._folders.corpus(name),
                passages,
                self._questions[name],
                self._folders.kept / name,
                self._encoder_of(),
            )
            self._open = _Open(at, ground)
            by_rule = ", ".join(f"{count:,} by {rule}" for rule, count in ground.rules.items())
            say(f"{name}, {passages}: hops {by_rule}".replace(f"by {UNRESOLVED}", UNRESOLVED))
        return self._open.ground

    def _searcher(self, key: Key) -> Searcher:
        """Return the searcher of a key, and drop that of another interface or kind of reply."""
        ground = self._ground(key)
        setting = _setting(key)
        opened = self._open
        if opened is None:
            raise RuntimeError("no ground is open")
        made = opened.searcher
        wanted = setting.interface, setting.reply
        if made is None or (made.interface, made.reply) != wanted:
            made = opened.searcher = Searcher(ground.index, *wanted)
            if setting.interface in BY_VECTORS:
                ground.index.encode_queries(self._queries(ground))
        return made

    def _queries(self, ground: Ground) -> list[str]:
        """Return all queries of searches by vectors, so that they are encoded together."""
        return [
            str(wording)
            for names in self._chosen.names
            for asked in ground.asked
            for link in asked.chain(cast(Names, names), SEED).links
            for wording in wordings("semantic", link.name, link.relation, in_title=False)
        ]

    def _encoder_of(self) -> Encoder | None:
        """Open the encoder once if an interface needs one."""
        if self._encoder is None and set(self._chosen.interfaces) & set(BY_VECTORS):
            self._encoder = open_encoder(self._chosen.encoder)
        return self._encoder

    def _close_ground(self) -> None:
        if self._open is not None:
            self._open.ground.index.close()
            self._open = None


def _setting(key: Key) -> Setting:
    return Setting(
        cast(Interface, key["interface"]),
        ORDERS[key["order"]],
        key["title"] == "on",
        cast(ReplyLevel, key["reply"]),
    )


def _applies(key: Key) -> bool:
    """Return whether the interface supports the levels."""
    if key["title"] == "on":
        packing = Packing.of(key["passages"])
        has_titles = packing is None or packing.titled
        return has_titles and key["interface"] in LOGICAL
    return not (key["reply"] == "snippets" and key["interface"] == "hybrid")


def _audited(key: Key, count: int) -> set[int]:
    """Return the numbers of the questions to audit in a cell; they differ between orders of
    queries."""
    start = list(ORDERS).index(key["order"]) * AUDITED
    return {(start + step) * 7919 % count for step in range(AUDITED)}


def _check_levels(chosen: GoldChain) -> None:
    """Raise BenchError for an unknown level."""
    for factor, allowed in _LEVELS.items():
        wrong = [level for level in chosen.factors[factor] if level not in allowed]
        if wrong:
            raise BenchError(
                f'"{wrong[0]}" is not a level of {factor}.', where="the suite",
                allowed=", ".join(allowed),
            )  # fmt: skip
    for passages in chosen.passages:
        Packing.of(passages)
