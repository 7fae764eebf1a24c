"""FaithfulRAG (Zhang et al., 2025), as we read it. It sets the model's beliefs against the corpus,
fact by fact.

Known: self-fact mining takes three calls. They are for the knowledge that the question needs, for a
context that the model writes from memory, and for the facts of that context. Contextual alignment
takes the pieces of the retrieved passages that are nearest to these facts. Self-think is an answer
from both that checks where they conflict. A-RAG ran it with three steps of mining and chunk_topk 5.

Chosen: our prompts. As many as ``passages`` passages come by the vector of the question. A piece
has ``sentences`` sentences of one passage. The ``pieces`` with the greatest cosine with any fact,
or with the question without a fact, are shown, and only they count as retrieved. There are at most
``facts`` facts, and self-think is one request.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pydantic import Field

from arag_search.agent.models.base import ModelReply
from arag_search.agent.state import State
from arag_search.tools.replies.parts import ShownPassage
from bench.rivals.answerer import NOTHING, Answerer, Settings, items, searched

SEARCH = "fact_alignment"


class FaithfulRagSettings(Settings):
    """The sizes of a run: ``facts`` at most, ``sentences`` of a piece, and ``pieces`` shown."""

    facts: int = Field(10, ge=1, le=50)
    sentences: int = Field(3, ge=1, le=20)
    pieces: int = Field(5, ge=1, le=50)


class FaithfulRag(Answerer):
    """Three requests that mine facts, a search that aligns them, and an answer."""

    roles = (
        "faithful_rag_knowledge",
        "faithful_rag_context",
        "faithful_rag_facts",
        "faithful_rag_answer",
    )
    settings_type = FaithfulRagSettings

    def answer(self, state: State) -> ModelReply:
        knowledge, context, mined, last = self.roles
        question = state.question
        needed = self.say(state, knowledge, question=question).text or NOTHING
        believed = self.say(state, context, question=question, knowledge_needed=needed).text
        said = self.say(state, mined, question=question, context=believed or NOTHING)
        facts = items(said.text, self.settings.facts)
        pieces = self._aligned(state, facts)
        known = "\n".join(facts) or NOTHING
        return self.say(state, last, pieces, question=question, facts_from_memory=known)

    def _aligned(self, state: State, facts: Sequence[str]) -> list[ShownPassage]:
        """Return the pieces of passages that are nearest to the facts, as a step."""
        began, settings = time.perf_counter(), self.settings
        question, k = searched(state.question, state), settings.passages
        hits = self.index.naive_embedding_search(question, top_k=k, snippets=False).hits
        chunks = [chunk for chunk in self.index.read([hit.id for hit in hits]) if chunk]
        pieces = [
            (chunk.id, range(first, min(first + settings.sentences, len(chunk.sentence_ends))))
            for chunk in chunks
            for first in range(0, len(chunk.sentence_ends), settings.sentences)
        ]
        shown: dict[str, list[int]] = {}
        if pieces:
            sentences = {chunk.id: chunk.sentences() for chunk in chunks}
            texts = ["".join(sentences[id][at] for at in numbers) for id, numbers in pieces]
            encoder = self.index.open_vectors().encoder
            cosines = encoder.encode(texts) @ encoder.encode_queries([*facts] or [question]).T
            best = (-cosines.max(axis=1)).argsort(kind="stable")[: settings.pieces]
            for id, numbers in (pieces[at] for at in best.tolist()):
                shown[id] = sorted([*shown.get(id, ()), *numbers])
        return self.show(state, SEARCH, {"query": question, "facts": [*facts]}, shown, began)
