"""What well-known models were trained to read before a query and before a document.

Model cards name these prefixes, but the files of a model often lack them, and an endpoint never
adds them. Without them most of these models find less, and nothing says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

TASK = "Given a web search query, retrieve relevant passages that answer the query"
DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # as sentence-transformers names them


class KnownModel(NamedTuple):
    """The prefixes of a model, and the number of its own tokens that it reads (None: thousands)."""

    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int | None = None


_INSTRUCTION = f"Instruct: {TASK}\nQuery: "
_SENTENCE = "Represent this sentence for searching relevant passages: "
_NOMIC = ("search_query: ", "search_document: ")

# The first pattern that is found in a name, in lower case and with hyphens, decides. Names vary:
# BAAI/bge-base-en-v1.5, bge-large:latest, text-embedding-nomic-embed-text-v1.5, m.Q8_0.gguf.
_KNOWN = {
    r"qwen3-embedding": KnownModel(f"Instruct: {TASK}\nQuery:"),
    r"multilingual-e5-large-instruct": KnownModel(_INSTRUCTION, "", 512),
    r"e5-mistral|gte-qwen|linq-embed-mistral|sfr-embedding-(mistral|2)": KnownModel(_INSTRUCTION),
    r"\b(multilingual-)?e5-(small|base|large)|mxbai-embed-de-": KnownModel(
        "query: ", "passage: ", 512
    ),
    r"\bbge-(small|base|large)-zh": KnownModel("为这个句子生成表示以用于检索相关文章：", "", 512),
    r"\bbge-(small|base|large)": KnownModel(_SENTENCE, "", 512),
    r"nomic-embed-text-v2": KnownModel(*_NOMIC, 512),
    r"nomic-embed-text": KnownModel(*_NOMIC, 2_048),  # as it was trained; some servers take 8,192
    r"modernbert-embed": KnownModel(*_NOMIC),
    r"arctic-embed2|arctic-embed-[lm]-v2": KnownModel("query: "),
    r"arctic-embed-m-long": KnownModel(_SENTENCE, "", 2_048),
    r"arctic-embed|mxbai-embed-large|uae-large": KnownModel(_SENTENCE, "", 512),
    r"embeddinggemma": KnownModel("task: search result | query: ", "title: none | text: ", 2_048),
    r"all-minilm": KnownModel(max_tokens=256),
    r"\bgte-(small|base|large)(?!-en-v1)": KnownModel(max_tokens=512),
}


def known_model(name: str) -> KnownModel:
    """Return what is known of a model by its name or its folder's name; else no prefixes."""
    plain = name.lower().replace("_", "-")
    return next(
        (known for pattern, known in _KNOWN.items() if re.search(pattern, plain)), KnownModel()
    )


def prefixes_of(
    name: str,
    prompts: Mapping[str, str | None],
    query_prefix: str | None,
    document_prefix: str | None,
) -> tuple[str, str]:
    """Return the prefixes of queries and of documents. Given ones come first, then the ``prompts``
    in the model's own files, if they have any of the two, and then the known ones."""
    documents = (prompts.get(key) for key in DOCUMENT_PROMPTS)
    own = (prompts.get("query") or "", next(filter(None, documents), ""))
    query, document = own if any(own) else known_model(name)[:2]
    return (
        query if query_prefix is None else query_prefix,
        document if document_prefix is None else document_prefix,
    )
