"""The options of a model that judges runs, shared by all commands that use one."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from arag_search.cli.options.model import BaseUrl
from arag_search.errors import ArgumentError
from arag_search.system.progress import open_progress

if TYPE_CHECKING:
    from arag_search.evaluation.judging.judges import Judges
    from arag_search.evaluation.measures import Measure

VERDICTS_FILE = "verdicts.jsonl"


class JudgeOptions(NamedTuple):
    """The options of a command that lets a model judge runs; nothing is judged without a name."""

    judge: Annotated[
        str | None,
        typer.Option(
            help="A model that judges the answers: an endpoint's, or replay:FILE. Verdicts that "
            "are kept are not asked for again.",
            metavar="MODEL",
        ),
    ] = None
    judge_repeats: Annotated[
        int,
        typer.Option(
            help="Verdicts on each answer: the majority counts, or the mean of scores.", metavar="K"
        ),
    ] = 1
    base_url: BaseUrl = None

    @contextmanager
    def judges(self, run: Path, measures: Collection[Measure] = ()) -> Generator[Judges]:
        """Use the judges of a run, a folder or a file, that the measures need; none without a name.
        Raises ArgumentError, RunError for a file that holds no verdicts, and the errors of
        ``choose_model``."""
        from arag_search.agent.models.choose import OFFLINE, choose_model
        from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
        from arag_search.evaluation.judging.verdict_cache import VerdictCache

        if self.judge is None:
            yield NO_JUDGES
            return
        if self.judge == OFFLINE:
            raise ArgumentError(
                f"Model {OFFLINE!r} cannot judge: it only searches and reads.",
                allowed="the name of an endpoint's model, or replay:FILE",
            )
        cache = VerdictCache((run.parent if run.is_file() else run) / VERDICTS_FILE)
        model = choose_model(self.judge, base_url=self.base_url)
        try:
            tell = open_progress().note
            yield Judges.of(model, measures, self.judge_repeats, cache, tell)
        finally:
            model.close()
