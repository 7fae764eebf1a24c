"""RAGentA (Besrour et al., 2025), as we read it: four agents that filter passages, answer with
citations, and search once more for what is missing.

Known: hybrid retrieval with a dense weight (alpha .65) of the top 20. The Predictor writes a
candidate answer from each passage. The Judge scores each passage, with question and candidate, by
the log-probabilities of yes and no, and keeps scores above mean - n x deviation. The
Final-Predictor answers with citations. The Claim Judge takes the answer apart. If a part of the
question is open, it asks a follow-up question, whose passages lead to one more answer.

Chosen: our prompts. The weight applies to cosine and BM25, each scaled from 0 to 1 over the first
20 of its ranking. The score is log P(yes) - log P(no) if the endpoint gives both, else 1, -1, or 0
for another word; n is ``deviations``. Kept passages come best first. Claims and the follow-up
question are one request, follow-up passages are not judged, and "none" ends with the first answer.
A question takes 2 k + 3 requests: 13 with A-RAG's five passages, 43 with the paper's twenty.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping

from pydantic import Field

from arag_search.agent.models.base import ModelReply
from arag_search.agent.state import State
from arag_search.evaluation.interfaces import words_query
from arag_search.search.results import SearchResult
from arag_search.tools.replies.parts import ShownPassage
from bench.rivals.answerer import DENSE, NOTHING, WORDS, Answerer, Settings, items, searched

SEARCH = "weighted_search"
DEPTH = 20
_FOLLOW_UP = re.compile(
    r"^\W*follow[- ]?up(?: question)?\W*:\s*(.+)$", re.IGNORECASE | re.MULTILINE
)
_VERDICT = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_VERDICTS = {"yes": 1.0, "no": -1.0}


class RagentaSettings(Settings):
    """The weight of cosines beside BM25 (``dense_weight``), and n of the bound (``deviations``)."""

    dense_weight: float = Field(0.65, ge=0, le=1)
    deviations: float = Field(0.5, ge=0)


class Ragenta(Answerer):
    """A predictor and a judge for each passage, two answers, and a judge of the first one."""

    searches = (DENSE, WORDS)
    roles = ("ragenta_predictor", "ragenta_judge", "ragenta_claims", "ragenta_answer")
    scored = ("ragenta_judge",)
    settings_type = RagentaSettings

    def answer(self, state: State) -> ModelReply:
        predictor, judge, claims, last = self.roles
        question = state.question
        scores: dict[ShownPassage, float] = {}
        for passage in self._search(state, question):
            candidate = self.say(state, predictor, [passage], question=question).text
            asked = {"question": question, "candidate_answer": candidate or NOTHING}
            scores[passage] = score_of(self.say(state, judge, [passage], **asked))
        kept = above(scores, self.settings.deviations)
        first = self.say(state, last, kept, question=question)
        said = self.say(state, claims, question=question, answer=first.text or NOTHING).text
        follow_up = next(iter(items("\n".join(_FOLLOW_UP.findall(said)), 1)), "")
        if first.text and follow_up.strip(" .").casefold() in ("", "none"):
            return first
        more = [of for of in self._search(state, follow_up) if of not in kept]
        return self.say(
            state, last, [*kept, *more], question=question, follow_up_question=follow_up or NOTHING,
            first_answer=first.text or NOTHING,
        )  # fmt: skip

    def _search(self, state: State, query: str) -> list[ShownPassage]:
        """Return the best passages by cosine and BM25, as a step."""
        began, settings = time.perf_counter(), self.settings
        query, k = searched(query, state), settings.passages
        dense = scaled(self.index.naive_embedding_search(query, top_k=DEPTH, snippets=False))
        lexical: dict[str, float] = {}
        if words := words_query(query):
            lexical = scaled(self.index.logical_search(words, top_k=DEPTH, snippets=False))
        weight = settings.dense_weight
        mixed = {
            id: weight * dense.get(id, 0.0) + (1 - weight) * lexical.get(id, 0.0)
            for id in dense | lexical
        }
        best = sorted(mixed, key=lambda id: (-mixed[id], id))[:k]
        arguments = {"query": query, "dense_weight": weight, "top_k": k}
        return self.show(state, SEARCH, arguments, dict.fromkeys(best), began)


def scaled(result: SearchResult) -> dict[str, float]:
    """Return the scores of passages by id, from 0 for the last to 1 for the first."""
    scores = {hit.id: hit.score for hit in result.hits}
    least = min(scores.values(), default=0.0)
    spread = max(scores.values(), default=0.0) - least
    return {id: (score - least) / spread if spread else 1.0 for id, score in scores.items()}


def score_of(reply: ModelReply) -> float:
    """Return how much a judge says yes: by its first tokens, or else by its word."""
    known: dict[str, float] = {}
    for token, logprob in reply.logprobs.items():
        word = token.strip().casefold()
        known[word] = max(logprob, known.get(word, logprob))
    if known.keys() >= _VERDICTS.keys():
        return known["yes"] - known["no"]
    word = _VERDICT.match(reply.text)
    return _VERDICTS[word[1].casefold()] if word else 0.0


def above(scores: Mapping[ShownPassage, float], deviations: float) -> list[ShownPassage]:
    """Return the passages at or above the mean score less so many standard deviations, best
    first."""
    if not scores:
        return []
    least = statistics.fmean(scores.values()) - deviations * statistics.pstdev(scores.values())
    kept = [passage for passage, score in scores.items() if score >= least - 1e-9]
    return sorted(kept, key=lambda passage: -scores[passage])
