"""The judging of a run by a model: answers, intents of searches, and causes of wrong answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arag_search.agent.models.base import ChatModel
from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from bench.ablation.judging.failures import FailureJudge
from bench.ablation.judging.intents import IntentJudge
from bench.ablation.measure import measure_of
from bench.workbench import say


@dataclass(frozen=True, slots=True)
class Judging:
    """The judges of answers, and of trajectories where these are judged."""

    answers: Judges = NO_JUDGES
    intents: IntentJudge | None = None
    failures: FailureJudge | None = None

    @staticmethod
    def of(
        model: ChatModel, measures: Iterable[str], cache: VerdictCache, *, trajectories: bool
    ) -> Judging:
        """Return the judges for these measures, which ask a model once about each answer."""
        answers = Judges.of(model, [measure_of(name) for name in measures], 1, cache, say)
        if not trajectories:
            return Judging(answers)
        return Judging(answers, IntentJudge(model, cache=cache), FailureJudge(model, cache=cache))

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """The models that judge, by what they judge."""
        judges = {
            "judge": self.answers.verdicts,
            "factuality judge": self.answers.factuality,
            "judge of trajectories": self.intents,
        }
        return {name: judge.model.fingerprint for name, judge in judges.items() if judge}


NOBODY = Judging()
