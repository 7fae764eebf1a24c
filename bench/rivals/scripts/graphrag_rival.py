# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["graphrag>=3.3,<4"]
# ///
"""GraphRAG (Edge et al., 2024) as Microsoft publishes it. Its standard index and its local search
have its defaults, which are A-RAG's settings (chunks of 1,200 tokens, ten entities)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lines import Said, counted, serve

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else its import asks the network for prices
import litellm

LEVEL = 2
"""The level of communities that its command takes by default."""
TABLES = ("entities", "communities", "community_reports", "text_units", "relationships")


for name in ("acompletion", "aembedding", "embedding"):
    setattr(litellm, name, counted(getattr(litellm, name)))


def opens(asked: Any) -> Callable[[Any], Said]:
    """Open the index of the folder; build it first if it is not there."""
    import pandas as pd
    from graphrag.api import build_index, local_search
    from graphrag.config.models.graph_rag_config import GraphRagConfig

    settings = asked["settings"]
    endpoint = {
        "model_provider": "openai",
        "api_key": os.environ.get("OPENAI_API_KEY") or "none",
        "api_base": os.environ.get("OPENAI_BASE_URL"),
    }
    encoder = {**endpoint, "model": settings["embedding_model"]}
    config = GraphRagConfig(
        completion_models={"default_completion_model": {**endpoint, "model": asked["model"]}},
        embedding_models={"default_embedding_model": encoder},
        vector_store={"vector_size": settings["vector_size"]},
    )
    if not (done := Path("done")).exists():
        texts = [{"id": of["id"], "title": of["id"], "text": f"{of['title']}\n{of['text']}"}
                 for of in asked["passages"]]  # fmt: skip
        documents = pd.DataFrame(texts).assign(creation_date="", raw_data=None)
        for part in asyncio.run(build_index(config, input_documents=documents)):
            if part.error:
                raise RuntimeError(f"{part.workflow}: {part.error}")
        done.touch()
    tables = {name: pd.read_parquet(f"output/{name}.parquet") for name in TABLES}
    units = tables["text_units"].set_index("human_readable_id")["document_id"]

    def answers(asked: Any) -> Said:
        text, context = asyncio.run(
            local_search(
                config, **tables, covariates=None, community_level=LEVEL,
                response_type=asked["form"], query=asked["question"],
            )
        )  # fmt: skip
        shown = context["sources"]["id"] if "sources" in context else ()
        return str(text), list(dict.fromkeys(str(units[int(id)]) for id in shown))

    return answers


if __name__ == "__main__":
    serve(opens)
