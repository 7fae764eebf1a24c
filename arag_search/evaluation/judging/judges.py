"""The judges that measures need, with one model and one file of verdicts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from arag_search.agent.models.base import ChatModel
from arag_search.evaluation.judging.factuality import FactualityJudge
from arag_search.evaluation.judging.judge import Judge
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.evaluation.measures import FACTUALITY, JUDGE_ACC, Measure


@dataclass(frozen=True, slots=True)
class Judges:
    """Judges of correctness and of factuality; None for one that is not needed."""

    verdicts: Judge | None = None
    factuality: FactualityJudge | None = None

    @staticmethod
    def of(
        model: ChatModel, measures: Collection[Measure], repeats: int, cache: VerdictCache
    ) -> Judges:
        """Return the judges that the measures need; the judge of correctness if they need none."""
        needs_factuality = FACTUALITY in measures
        needs_verdicts = JUDGE_ACC in measures or not needs_factuality
        return Judges(
            Judge(model, repeats=repeats, cache=cache) if needs_verdicts else None,
            FactualityJudge(model, repeats=repeats, cache=cache) if needs_factuality else None,
        )


NO_JUDGES = Judges()
