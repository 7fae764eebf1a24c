"""MA-RAG (Nguyen et al., 2025), as we read it: agents with a role each, and no training.

Known: a planner takes the question apart once. For each step of the plan a step definer writes a
query from the step and what earlier steps found. Passages are retrieved by cosine. An extractor
takes from them what helps, and a question-answering agent answers the step. The answer comes from
all steps. A-RAG ran it with a plan agent, a plan executor, and five passages.

Chosen: our prompts. The plan is lines, at most ``steps`` of them, or the question itself if there
is no line. The extractor is asked once for all passages of a step. Without a query of the definer
the step is searched for; without an extract the passages' answerer sees none.
"""

from __future__ import annotations

from pydantic import Field

from arag_search.agent.models.base import ModelReply
from arag_search.agent.state import State
from arag_search.tokens import cut_to
from bench.rivals.answerer import MAX_ITEM_TOKENS, NOTHING, Answerer, Settings, items


class MaRagSettings(Settings):
    """``steps`` bounds the plan."""

    steps: int = Field(5, ge=1, le=10)


class MaRag(Answerer):
    """A planner, and for each of its steps a definer, a search, an extractor and an answerer."""

    settings_type = MaRagSettings
    roles = (
        "ma_rag_planner",
        "ma_rag_definer",
        "ma_rag_extractor",
        "ma_rag_step_answerer",
        "ma_rag_answer",
    )

    def answer(self, state: State) -> ModelReply:
        planner, definer, extractor, answerer, last = self.roles
        question = state.question
        plan = items(self.say(state, planner, question=question).text, self.settings.steps)
        history: list[str] = []
        for number, step in enumerate(plan or [question], 1):
            so_far = "\n".join(history) or NOTHING
            defined = self.say(state, definer, question=question, found_so_far=so_far, step=step)
            query = " ".join(items(defined.text, 1)) or step
            passages = self.nearest(state, query)
            extract = self.say(state, extractor, passages, query=query).text or NOTHING
            said = self.say(state, answerer, query=query, extract=extract).text or NOTHING
            history.append(f"{number}. {query}\n{cut_to(said, MAX_ITEM_TOKENS)}")
        return self.say(state, last, question=question, steps="\n".join(history))
