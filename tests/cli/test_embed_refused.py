"""``embed``, ``add`` and ``info`` with an endpoint that refuses single texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arag_search import open_index
from arag_search.vectors.encoders.hashing import HashingEncoder
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import Command
from tests.support.endpoint import Answer, Endpoint, embeddings, refusal, running_endpoint


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    hashing = HashingEncoder()

    def answer_to(request: dict[str, Any]) -> Answer:
        texts: list[str] = request["input"]
        if any(running.blocked in text for text in texts):
            return refusal(400, "The text is blocked.")
        return embeddings(*hashing.encode(texts).tolist())

    with running_endpoint() as running:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("ARAG_EMBEDDING_BASE_URL", running.base_url)
        running.reply_with(Answer())
        running.reply_by(answer_to)
        running.blocked = "bomb"  # type: ignore[attr-defined]
        yield running


def write(name: str, *records: tuple[str, str]) -> str:
    lines = [json.dumps({"id": id_, "title": "", "text": text}) for id_, text in records]
    Path(name).write_text("\n".join(lines))
    return name


def test_all_other_texts_are_embedded_and_the_refused_ones_named(
    endpoint: Endpoint, arag: Command
) -> None:
    texts = [(f"d{n}", f"Page {n}{' on a bomb' if n % 3 == 0 else ''}.") for n in range(9)]
    assert arag("index", write("corpus.jsonl", *texts), "--to", "index").code == 0
    embed = ("embed", "index", "--encoder", "endpoint:m", "--unit", "passage")
    done = arag(*embed)
    named = ", ".join(f"d{n}.1 (The text is blocked.)" for n in (0, 3, 6))
    said = f"3 texts have no vector, refused by the endpoint: {named}"
    assert (done.code, done.lines[-1]) == (0, f"{said}; the same command asks for them again")
    again = arag(*embed, "--json").json
    assert again["texts"] == {"passage": 6}
    assert again["refused"]["count"] == 3
    assert f"; {said}; " in arag("info", "index").out
    assert (
        arag("info", "index", "--json").json["vectors"][0]["refused"]["first"][0].startswith("d0")
    )
    with open_index("index") as index:
        assert len(index.naive_embedding_search("a page", top_k=9).hits) == 6
        assert len(index.hybrid_search("page", top_k=9).hits) == 9  # the others by their words
    more = write("more.jsonl", ("e1", "A last bomb."), ("e2", "A last page."))
    added = arag("add", more, "--to", "index")
    assert added.code == 0
    assert "1 text has no vector, refused by the endpoint: e1.1 (The text is blocked.)" in added.out
    assert "; 4 texts have no vector, refused by the endpoint: d0.1 (" in arag("info", "index").out
    endpoint.blocked = "nothing"  # type: ignore[attr-defined]
    mended = arag(*embed, "--json").json
    assert (mended["refused"]["count"], mended["encoded_rows"]) == (0, 4)
    assert arag(*embed, "--json").json["up_to_date"]
    endpoint.blocked = "."  # type: ignore[attr-defined]
    assert arag(*embed, "--overwrite").code == 1
