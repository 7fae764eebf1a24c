"""The judges that measures need, with one model and one file of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from arag_search.agent.models.base import ChatModel
from arag_search.agent.record import Record
from arag_search.evaluation.judging.factuality import FactualityJudge
from arag_search.evaluation.judging.judge import Judge
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.evaluation.measures import FACTUALITY, JUDGE_ACC, Measure
from arag_search.questions.question import Question
from arag_search.system.progress import counted


@dataclass(frozen=True, slots=True)
class Judges:
    """Judges of correctness and of factuality; None if no measure needs the judge. ``tell`` takes
    what users should know before the model is asked."""

    verdicts: Judge | None = None
    factuality: FactualityJudge | None = None
    tell: Callable[[str], None] = lambda text: None

    @staticmethod
    def of(
        model: ChatModel,
        measures: Collection[Measure],
        repeats: int,
        cache: VerdictCache,
        tell: Callable[[str], None] = lambda text: None,
    ) -> Judges:
        """Return the judges that the measures need; the judge of correctness if they need none."""
        needs_factuality = FACTUALITY in measures
        needs_verdicts = JUDGE_ACC in measures or not needs_factuality
        return Judges(
            Judge(model, repeats=repeats, cache=cache) if needs_verdicts else None,
            FactualityJudge(model, repeats=repeats, cache=cache) if needs_factuality else None,
            tell,
        )

    def tell_cost(self, questions: Sequence[Question], records: Mapping[str, Record]) -> None:
        """Tell how many verdicts the model will be asked for, if any."""
        for judge in filter(None, (self.verdicts, self.factuality)):
            if missing := judge.to_ask(questions, records):
                asked = counted(len(missing), "verdict is", "verdicts are") + " asked of"
                again = f", {sum(missing):,} of them again: no verdict is in its stored reply"
                self.tell(f"{asked} {judge.model.name}{again if any(missing) else ''}.")


NO_JUDGES = Judges()
