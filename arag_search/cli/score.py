"""arag-search score: score a run against gold answers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from arag_search.agent.models.base import ChatModel
from arag_search.agent.models.choose import OFFLINE, choose_model
from arag_search.cli.options.index import SearchedIndex
from arag_search.cli.options.model import BaseUrl
from arag_search.cli.output.printing import print_json, print_text
from arag_search.cli.output.score_tables import details_text, measures_text, score_text
from arag_search.errors import ArgumentError
from arag_search.evaluation.judging.agreement import read_labels
from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.score import score
from arag_search.search.index import open_index

VERDICTS_FILE = "verdicts.jsonl"


def score_command(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder of a run, or a file of A-RAG's predictions.", metavar="DIR"
        ),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Score against this file.  [default: the one the run was given]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Print these measures instead, such as EM,TokensToEvidence,nDCG@10; may be "
            "repeated.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    index: SearchedIndex = None,
    trajectories: Annotated[
        bool,
        typer.Option(
            "--trajectories",
            help="Also print how much consecutive searches overlap, what followed failed "
            "searches, and why answers are wrong.",
        ),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(
            help="A model that judges the answers: an endpoint's, or replay:FILE. It says which "
            "are right or, with --measure Factuality, how factual they are.",
            metavar="MODEL",
            show_default=False,
        ),
    ] = None,
    judge_repeats: Annotated[
        int,
        typer.Option(
            help="Verdicts on each answer: the majority counts, or the mean of scores.", metavar="K"
        ),
    ] = 1,
    judge_trajectories: Annotated[
        bool,
        typer.Option(
            "--judge-trajectories",
            help="Also let the model judge which searches were for the same fact and succeeded, "
            "and why the first 100 wrong answers are wrong; prints what --trajectories does.",
        ),
    ] = False,
    judge_cache: Annotated[
        Path | None,
        typer.Option(
            help="Where verdicts are kept.  [default: verdicts.jsonl in the folder]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    judge_labels: Annotated[
        Path | None,
        typer.Option(
            help='Human labels to compare with: JSON lines of {"question_id", "label"}.',
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    base_url: BaseUrl = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, including each question.")
    ] = False,
) -> int:
    """Score a run against gold answers, overall and by type.

    EM and F1 are computed on the short answer as in SQuAD, with HotpotQA's rule for yes and no;
    Contain-Acc on the short answer and the explanation, as in A-RAG; evidence is the share of gold
    titles among the titles shown. Every question of the run counts; those that failed or have no
    record yet count as 0. Tokens (of corpus text), steps and seconds are means over the records.
    The right reply to an unanswerable question is that there is no answer.

    \b
    Measures: EM, F1, ContainAcc, JudgeAcc, Factuality; where the corpus has no answer: Refusal,
    Hallucination, GoldLeak; EvidenceRecall, FullEvidence, TokensToEvidence, RetrievedTokens,
    PromptTokens, CompletionTokens, TotalTokens, ToolCalls (of one tool: ToolCalls:open),
    SummarizeCalls, Iterations, Steps, Seconds, Cost; of rankings, with --index and judged documents
    (else those that hold the evidence): Recall@k, P@k, nDCG@k, RR@k, AP@k, Success@k; of the
    documents that answers cite, best first, with judged documents or --index: CitedRecall@k,
    CitedNDCG@k, CitedSuccess@k.

    A judge sees the question, the gold answers, the answer and the explanation. Its verdicts are
    kept, so that a run is judged only once. Answers without a verdict are reported as "not judged".
    It says whether an answer is right (JudgeAcc); with --measure Factuality, it gives a score from
    0 to 1 instead, by our own prompt, and with --measure JudgeAcc,Factuality it does both.

    Examples:

    \b
      arag-search score runs/a
      arag-search score runs/a --json > a.json
      arag-search score results/musique/predictions.jsonl
      arag-search score runs/a --index my-index --measure EM,FullEvidence,TokensToEvidence
      arag-search score runs/a --judge gpt-4o-mini --judge-repeats 3 --trajectories
      arag-search score runs/a --judge gpt-4o-mini --judge-repeats 3 --measure Factuality
      arag-search score runs/a --judge gpt-4o-mini --judge-trajectories --index my-index
      arag-search score runs/a --measure CitedRecall@1,TotalTokens,ToolCalls:open
    """
    measures = parse_measures(measure or ())
    labels = None if judge_labels is None else read_labels(judge_labels)
    cache = judge_cache or (folder.parent if folder.is_file() else folder) / VERDICTS_FILE
    if judge_trajectories and judge is None:
        raise ArgumentError(
            "--judge-trajectories is given without a model that judges.",
            allowed="--judge MODEL --judge-trajectories",
            do="Name the model with --judge.",
        )
    with ExitStack() as stack:
        judges = NO_JUDGES
        if judge is not None:
            model = stack.enter_context(_judging_model(judge, base_url))
            judges = Judges.of(
                model,
                measures,
                judge_repeats,
                VerdictCache(cache),
                trajectories=judge_trajectories,
            )
        opened = None
        if index is not None:
            opened = stack.enter_context(open_index(index))
        scored = score(
            folder,
            questions,
            measures=measures,
            index=opened,
            judges=judges,
            labels=labels,
        )
    if json:
        print_json(scored.to_json(), pretty=True)
        return 0
    print_text(measures_text(scored) if scored.measures else score_text(scored))
    if trajectories or judge_trajectories:
        print_text(details_text(scored))
    return 0


@contextmanager
def _judging_model(name: str, base_url: str | None) -> Generator[ChatModel]:
    """Open the model that judges, and close it at the end."""
    if name == OFFLINE:
        raise ArgumentError(
            f"Model {OFFLINE!r} cannot judge: it only searches and reads.",
            allowed="the name of an endpoint's model, or replay:FILE",
        )
    model = choose_model(name, base_url=base_url)
    try:
        yield model
    finally:
        model.close()
