"""arag-search score: score a run against gold answers, or several beside the first."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from arag_search.cli.options.index import Json, SearchedIndex
from arag_search.cli.options.judge import JudgeOptions
from arag_search.cli.options.parser import with_groups
from arag_search.cli.output.printing import print_result
from arag_search.cli.output.score_tables import details_text, differences_text, score_text
from arag_search.errors import ArgumentError
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.run_differences import BY_DEFAULT, compare_runs
from arag_search.evaluation.score import Score, score
from arag_search.search.opening import open_index


@with_groups
def score_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="The folder of a run, or a file of A-RAG's predictions; several are compared "
            "with the first.",
            metavar="DIR",
        ),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Score against this file.  [default: the one the run was given]", metavar="FILE"
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Print these measures instead, such as EM,TokensToEvidence,Recall@5; may be "
            "repeated.",
            metavar="NAME",
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
    *,
    judge: JudgeOptions,
    json: Json = False,
) -> int:
    """Score a run against gold answers, overall and by type.

    EM and F1 are computed on the short answer as in SQuAD, with HotpotQA's rule for yes and no.
    Contain-Acc is computed on the short answer and the explanation, as in A-RAG. Evidence is the
    share of gold titles that were shown. Every question of the run counts; a question that failed
    or has no record yet counts as 0. Right answers are "grounded" if a passage of each piece of the
    gold evidence was shown and is cited, else "from memory". Without gold evidence, they are
    grounded if they stand in cited text. "Without a search" counts replies before which no search
    ran. Tokens (of corpus text), steps and seconds are means over the records. The right reply to
    an unanswerable question is that there is no answer.

    \b
    Measures:
      answers        EM, F1, ContainAcc, GroundedAcc, MemoryShare, JudgeAcc, Factuality
      no answer      Refusal, Hallucination, GoldLeak (where the corpus has no answer)
      evidence       EvidenceRecall, FullEvidence, TokensToEvidence
      cost           RetrievedTokens, PromptTokens, CompletionTokens, TotalTokens, TokensToRight,
                     ToolCalls (ToolCalls:open of one tool), SummarizeCalls, Iterations, Steps,
                     Seconds, Cost
      shown          Recall@k, nDCG@k, AP@k (with --index)
      cited          CitedRecall@k, CitedNDCG@k, CitedSuccess@k (documents that answers cite)
      your own       MODULE:FUNCTION

    Rankings of shown and cited documents need judged documents, or with --index the documents that
    hold the evidence. Your own function is imported from the current folder. It takes a record and
    its question, and returns a number, or None.

    A judge sees the question, the gold answers, the answer and the explanation. Its verdicts are
    kept, so that a run is judged only once. Answers without a verdict are reported as "not judged".
    It says whether an answer is right (JudgeAcc). With --measure Factuality, it gives a score from
    0 to 1 instead, by our own prompt. With --measure JudgeAcc,Factuality it does both.

    Several runs are compared with the first: differences of means, with intervals of 95 % (paired
    bootstrap, Bonferroni). "Not told apart": the interval holds 0; they may still differ.

    Examples:

    \b
      arag-search score runs/a
      arag-search score runs/a --json > a.json
      arag-search score runs/a runs/b runs/c --measure EM,my_module:words
      arag-search score results/musique/predictions.jsonl
      arag-search score runs/a --index my-index --measure EM,FullEvidence,TokensToEvidence
      arag-search score runs/a --judge gpt-4o-mini --judge-repeats 3 --trajectories
      arag-search score runs/a --judge gpt-4o-mini --judge-repeats 3 --measure Factuality
      arag-search score runs/a --measure CitedRecall@1,TotalTokens,ToolCalls:open
    """
    several = len(folders) > 1
    measures = parse_measures(measure or ()) or (BY_DEFAULT if several else ())
    if len(set(folders)) < len(folders):
        raise ArgumentError("A run is named twice.", where="DIR", allowed="each run once")
    scores: dict[str, Score] = {}
    with ExitStack() as stack:
        opened = None if index is None else stack.enter_context(open_index(index))
        for folder in folders:
            judges = stack.enter_context(judge.judges(folder, measures))
            scores[str(folder)] = score(
                folder, questions, measures=measures, index=opened, judges=judges
            )
    if several:
        results = compare_runs(scores)
        text = differences_text(results)
    else:
        (results,) = scores.values()
        text = score_text(results)
    details = [details_text(of) for of in scores.values()] if trajectories else []
    return print_result("\n".join([text, *details]), results.to_json(), json)
