"""The gold-chain agent under all levels of its factors, as an experiment that suites measure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache, lru_cache
from typing import cast

from arag_search.agent.prompts import preset_fingerprint
from arag_search.evaluation.evidence import EVIDENCE_CAP_TOKENS
from arag_search.questions.files import load_questions, questions_fingerprint
from arag_search.questions.question import Question
from bench.ablation.cells import Cell, CellRow
from bench.ablation.suite import GoldChain, Interface, Key, Names, chosen
from bench.data import Folders
from bench.gold_chain.ground import Ground, check_chains, open_ground
from bench.gold_chain.policy import ORDERS, POLICY_VERSION, HopOutcome
from bench.gold_chain.queries import wordings
from bench.gold_chain.searcher import Searcher, preset_of

SEED = 1
"""The seed of the words that are dropped from names."""
BY_VECTORS: tuple[Interface, ...] = ("semantic", "hybrid")


class GoldChainExperiment:
    """An Experiment. Raises BenchError for questions without a chain."""

    def __init__(self, suite: GoldChain, folders: Folders) -> None:
        self._suite = suite
        self._folders = folders
        self._open = ExitStack()
        self._ground = cache(self._open_ground)
        # It remembers all that it has found, so that only the last one is kept.
        self._searcher = lru_cache(1)(self._open_searcher)
        self._questions = {
            name: chosen(load_questions(folders.questions(name)), suite.questions, name)
            for name in suite.sets
        }
        for name, questions in self._questions.items():
            check_chains(questions, name)

    def measure(self, key: Key) -> Cell:
        """See Experiment."""
        interface, names = cast(Interface, key["interface"]), cast(Names, key["names"])
        ground, searcher = self._ground(key["set"]), self._searcher(key["set"], interface)
        rows = [
            row_of(
                asked.question, SEED, searcher.walk(asked.chain(names, SEED), ORDERS[key["order"]])
            )
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
        self._open.close()

    def _open_ground(self, name: str) -> Ground:
        encoder = self._suite.encoder if set(self._suite.interfaces) & set(BY_VECTORS) else None
        corpus, kept = self._folders.corpus(name), self._folders.kept / name
        ground = open_ground(corpus, self._questions[name], kept, encoder)
        self._open.callback(ground.index.close)
        return ground

    def _open_searcher(self, name: str, interface: Interface) -> Searcher:
        ground = self._ground(name)
        if interface in BY_VECTORS:  # all queries are encoded together
            ground.index.encode_queries(
                [
                    str(wording)
                    for names in self._suite.names
                    for asked in ground.asked
                    for link in asked.chain(names, SEED)
                    for wording in wordings("semantic", link.name, link.relation)
                ]
            )
        return Searcher(ground.index, interface)


def row_of(question: Question, seed: int, hops: Sequence[HopOutcome]) -> CellRow:
    """Return the row of a question in a cell; for its measures see bench/studies/gold_chain.md."""
    tokens = sum(hop.tokens for hop in hops)
    searches = sum(hop.searches for hop in hops)
    is_full = all(hop.shown for hop in hops) and tokens <= EVIDENCE_CAP_TOKENS
    values = {
        "TokensToEvidence": float(tokens if is_full else EVIDENCE_CAP_TOKENS),
        "FullEvidence": float(is_full),
        "EvidenceRecall": sum(hop.shown for hop in hops) / len(hops),
        "RetrievedTokens": float(tokens),
        "Searches": float(searches),
        "ZeroHits": sum(hop.zero_hits for hop in hops) / searches if searches else None,
        "RefusedQueries": sum(hop.refused for hop in hops) / searches if searches else None,
        "FailedTokens": float(sum(hop.failed_tokens for hop in hops)),
    }
    unresolved = not all(hop.resolved for hop in hops)
    return CellRow(question.id, question.type, seed, values, unresolved=unresolved)
