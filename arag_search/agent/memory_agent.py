"""MemoryAgent, the second agent of A-RAG's repository. It reads passages in the order of the corpus
and carries a bounded memory along; the answer comes from the memory alone.

A-RAG states a memory of 5,000 tokens, updates in an element ``<update>``, and three earlier
examples for each passage, recalled by TF-IDF. The rest is ours. An update is the whole new memory.
Examples are the passages read before that are nearest to the question and the present passage
together. The reading ends after ``max_loops`` passages.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from arag_search.agent.models.base import ModelReply
from arag_search.agent.models.usage import Usage
from arag_search.agent.prompts import prompt_text, system_prompt
from arag_search.query.analysis import terms
from arag_search.search.index import Index
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.passages.read import ChunkRead
from arag_search.tools.preset import Preset
from arag_search.tools.tool import ReadSet

NOTHING = "(nothing yet)"
RECALLED = 3
"""The passages read before that are shown again beside each passage."""
_UPDATE = re.compile(r"<update>(.*?)</update>", re.DOTALL)
_QUESTION_TOKENS = 50  # in estimates, which are made before questions are known


class MemoryReader:
    """The passages that are read for every question, and the requests that a model gets on the way.

    ``calls`` and ``results`` are the calls of chunk_read and their results, one for each passage in
    order. They do not depend on the question, so that threads may share a reader.
    """

    def __init__(self, index: Index, preset: Preset) -> None:
        self._preset = preset
        tool = ChunkRead(index, preset)
        chunks = islice(index.scan(), preset.max_loops)
        self.calls = [{"chunk_ids": [chunk.id]} for chunk in chunks]
        self.results = [tool.run(call, ReadSet(), tells_standing=False) for call in self.calls]
        self._texts = TfIdf([result.text for result in self.results])

    def request(self, number: int, question: str, memory: str) -> str:
        """Return the message that shows a passage, by its number from 0, and asks for an update."""
        nearest = self._texts.nearest(number, question, RECALLED)
        return prompt_text("memory_update").format(
            question=question,
            memory=memory or NOTHING,
            recalled="\n\n".join(self.results[at].text for at in nearest) or NOTHING,
            number=number + 1,
            count=len(self.results),
            passage=self.results[number].text,
            max_tokens=self._preset.memory_tokens,
        )

    def updated(self, memory: str, reply: ModelReply) -> str:
        """Return the memory after a reply. A reply that was cut off, or has no update, changes
        nothing."""
        updates = [text.strip() for text in _UPDATE.findall(reply.text)]
        if reply.cut is not None or not updates or not updates[-1]:
            return memory
        return cut_to(updates[-1], self._preset.memory_tokens)

    def answer_request(self, question: str, memory: str) -> str:
        """Return the message that asks for the answer."""
        return prompt_text("memory_answer").format(question=question, memory=memory or NOTHING)

    def estimate(self) -> Usage:
        """Return the tokens of a question whose memory is full from the second passage on. Thoughts
        of the model are not included."""
        passages = [result.tokens for result in self.results]
        frame = count_tokens(system_prompt(self._preset)) + _QUESTION_TOKENS
        frame += count_tokens(prompt_text("memory_update"))
        mean = sum(passages) / max(len(passages), 1)
        recalled = sum(min(at, RECALLED) for at in range(len(passages)))
        full = self._preset.memory_tokens * len(passages)
        prompts = frame * (len(passages) + 1) + sum(passages) + round(recalled * mean) + full
        return Usage(prompts, full, "counted")

    def estimate_text(self) -> str:
        """Return the estimate in words."""
        usage = self.estimate()
        return (
            f"{self._preset.name} reads {len(self.results):,} passages for each question: "
            f"{len(self.results) + 1:,} calls, with a full memory about {usage.prompt_tokens:,} "
            f"tokens of requests and {usage.completion_tokens:,} of replies"
        )


class TfIdf:
    """Texts as vectors of their terms, each weighted by how rare it is among the texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(terms(text)) for text in texts]
        having = Counter(term for counts in self._counts for term in counts)
        self._weights = {term: 1 + math.log(len(texts) / count) for term, count in having.items()}
        self._vectors = [self._vector(counts) for counts in self._counts]

    def nearest(self, number: int, words: str, most: int) -> list[int]:
        """Return the numbers of at most ``most`` texts before a text that are nearest to it and to
        words together, by cosine, best first. O(the terms of all earlier texts)."""
        wanted = self._vector(self._counts[number] + Counter(terms(words)))
        scores = [
            sum(weight * wanted.get(term, 0.0) for term, weight in vector.items())
            for vector in self._vectors[:number]
        ]
        best = sorted(range(number), key=lambda at: (-scores[at], at))
        return [at for at in best[:most] if scores[at] > 0]

    def _vector(self, counts: Counter[str]) -> dict[str, float]:
        """Return the vector of length 1; terms of none of the texts do not count."""
        vector = {
            term: count * self._weights[term]
            for term, count in counts.items()
            if term in self._weights
        }
        length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
        return {term: weight / length for term, weight in vector.items()}
