"""The judges that measures need, with one model and one file of verdicts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from arag_search.agent.models.base import ChatModel
from arag_search.evaluation.judging.factuality import FactualityJudge
from arag_search.evaluation.judging.failures import FailureJudge
from arag_search.evaluation.judging.intents import IntentJudge
from arag_search.evaluation.judging.judge import Judge
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.evaluation.measures import FACTUALITY, JUDGE_ACC, Measure


@dataclass(frozen=True, slots=True)
class Judges:
    """Judges of correctness, of factuality, of the intents of searches and of the reasons of
    failures; None for one that is not needed."""

    verdicts: Judge | None = None
    factuality: FactualityJudge | None = None
    intents: IntentJudge | None = None
    failures: FailureJudge | None = None

    @staticmethod
    def of(
        model: ChatModel,
        measures: Collection[Measure],
        repeats: int,
        cache: VerdictCache,
        *,
        trajectories: bool = False,
    ) -> Judges:
        """Return the judges that the measures need; the judge of correctness if they need none.
        With ``trajectories``, also those of searches and failures."""
        needs_factuality = Measure(FACTUALITY) in measures
        needs_verdicts = Measure(JUDGE_ACC) in measures or not needs_factuality
        return Judges(
            Judge(model, repeats=repeats, cache=cache) if needs_verdicts else None,
            FactualityJudge(model, repeats=repeats, cache=cache) if needs_factuality else None,
            IntentJudge(model, repeats=repeats, cache=cache) if trajectories else None,
            FailureJudge(model, repeats=repeats, cache=cache) if trajectories else None,
        )


NO_JUDGES = Judges()
