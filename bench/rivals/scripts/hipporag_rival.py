# /// script
# requires-python = ">=3.10,<3.12"
# dependencies = ["hipporag==2.0.0a4"]
# ///
"""HippoRAG2 (Gutiérrez et al., 2025) as its authors publish it, with A-RAG's settings. Not run by
us: it imports vllm, which needs a GPU. It is written against the calls of the package's README."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from lines import Said, counted, serve
from openai.resources.chat.completions import Completions
from openai.resources.embeddings import Embeddings

QA_PASSAGES = 5


for resource in (Completions, Embeddings):
    resource.create = counted(resource.create)


def opens(asked: Any) -> Callable[[Any], Said]:
    """Open the index of the folder, to which passages are added that are not there."""
    from hipporag import HippoRAG
    from hipporag.utils.config_utils import BaseConfig

    address = os.environ.get("OPENAI_BASE_URL")
    config = BaseConfig(
        save_dir="hipporag", llm_name=asked["model"], llm_base_url=address,
        embedding_model_name=asked["settings"]["embedding_model"], embedding_base_url=address,
        graph_type="facts_and_sim_passage_node", retrieval_top_k=200, qa_top_k=QA_PASSAGES,
    )  # fmt: skip
    system = HippoRAG(global_config=config)
    id_of = {f"{of['title']}\n{of['text']}": of["id"] for of in asked["passages"]}
    system.index(docs=list(id_of))

    def answers(asked: Any) -> Said:
        (solution, *_), *_ = system.rag_qa(queries=[asked["question"]])
        shown = [id_of[text] for text in solution.docs[:QA_PASSAGES] if text in id_of]
        return f"Answer: {solution.answer}" if solution.answer else "", shown

    return answers


if __name__ == "__main__":
    serve(opens)
