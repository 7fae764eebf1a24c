"""The gold-chain agent under all levels of its factors, as an experiment that suites measure."""

from __future__ import annotations

from typing import cast, get_args

from arag_search.agent.presets import preset_fingerprint
from arag_search.questions.files import load_questions, questions_fingerprint
from arag_search.vectors.base import Encoder
from arag_search.vectors.encoders.choose import open_encoder
from bench import BenchError
from bench.ablation.cells import Cell
from bench.ablation.folders import Folders
from bench.ablation.suite import GoldChain, Key, chosen
from bench.gold_chain.ground import Ground, check_chains, open_ground
from bench.gold_chain.names import Names
from bench.gold_chain.outcome import row_of
from bench.gold_chain.policy import ORDERS, POLICY_VERSION
from bench.gold_chain.queries import INTERFACES, Interface, wordings
from bench.gold_chain.searcher import Searcher, preset_of

SEED = 1
"""The seed of the words that are dropped from names."""
BY_VECTORS: tuple[Interface, ...] = ("semantic", "hybrid")


class GoldChainExperiment:
    """An Experiment. Raises BenchError for unknown levels, and for questions without a chain."""

    def __init__(self, suite: GoldChain, folders: Folders) -> None:
        self._suite = suite
        self._folders = folders
        self._encoder: Encoder | None = None
        self._ground: tuple[str, Ground] | None = None
        self._searcher: Searcher | None = None
        _check_levels(suite)
        self._questions = {
            name: chosen(load_questions(folders.questions(name)), suite.questions, name)
            for name in suite.sets
        }
        for name, questions in self._questions.items():
            check_chains(questions, name)

    def measure(self, key: Key) -> Cell:
        """See Experiment."""
        ground = self._grounded(key)
        interface, names = cast(Interface, key["interface"]), cast(Names, key["names"])
        if self._searcher is None or self._searcher.interface != interface:
            self._searcher = Searcher(ground.index, interface)
            if interface in BY_VECTORS:
                ground.index.encode_queries(self._queries(ground))
        searcher, order = self._searcher, ORDERS[key["order"]]
        rows = [
            row_of(asked.question, SEED, searcher.walk(asked.chain(names, SEED), order))
            for asked in ground.asked
        ]
        fingerprints = {
            "preset": preset_fingerprint(preset_of(interface)),
            "index": ground.index.manifest.fingerprint,
            "questions": questions_fingerprint(self._questions[key["set"]]),
            "policy": POLICY_VERSION,
            "encoder": self._suite.encoder if interface in BY_VECTORS else "none",
        }
        return Cell(key, fingerprints, rows)

    def close(self) -> None:
        """See Experiment."""
        if self._ground is not None:
            self._ground[1].index.close()
        if self._encoder is not None:
            self._encoder.close()
        self._ground = self._encoder = None

    def _grounded(self, key: Key) -> Ground:
        """Open the ground of a key and close any other."""
        name = key["set"]
        if self._ground is not None and self._ground[0] == name:
            return self._ground[1]
        if self._ground is not None:
            self._ground[1].index.close()
        if self._encoder is None and set(self._suite.interfaces) & set(BY_VECTORS):
            self._encoder = open_encoder(self._suite.encoder)
        corpus, kept = self._folders.corpus(name), self._folders.kept / name
        ground = open_ground(corpus, self._questions[name], kept, self._encoder)
        self._ground, self._searcher = (name, ground), None
        return ground

    def _queries(self, ground: Ground) -> list[str]:
        """Return all queries of searches by vectors, so that they are encoded together."""
        return [
            str(wording)
            for names in self._suite.names
            for asked in ground.asked
            for link in asked.chain(cast(Names, names), SEED).links
            for wording in wordings("semantic", link.name, link.relation)
        ]


def _check_levels(suite: GoldChain) -> None:
    """Raise BenchError for an unknown level."""
    allowed = {"interface": INTERFACES, "order": tuple(ORDERS), "names": get_args(Names)}
    for factor, levels in allowed.items():
        wrong = [level for level in suite.factors[factor] if level not in levels]
        if wrong:
            raise BenchError(
                f'"{wrong[0]}" is not a level of {factor}.',
                where="the suite",
                allowed=", ".join(levels),
            )
