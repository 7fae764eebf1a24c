"""The judges of trajectories: of the intents of searches, and of why answers are wrong."""

from __future__ import annotations

from dataclasses import dataclass

from arag_search.agent.models.base import ChatModel
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from bench.ablation.judging.failures import FailureJudge
from bench.ablation.judging.intents import IntentJudge


@dataclass(frozen=True, slots=True)
class TrajectoryJudges:
    """Judges of the intents of searches and of the reasons of failures."""

    intents: IntentJudge
    failures: FailureJudge

    @staticmethod
    def of(model: ChatModel, cache: VerdictCache) -> TrajectoryJudges:
        """Return the judges, which ask a model once about each."""
        return TrajectoryJudges(IntentJudge(model, cache=cache), FailureJudge(model, cache=cache))
