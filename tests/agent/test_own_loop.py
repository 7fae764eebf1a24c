"""A toolbox as developers use it: in a loop of their own, and in a server with many requests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai

import arag_search
import index_jobs
from arag_search.search.opening import open_index
from tests.support.endpoint import completion, running_endpoint
from tests.support.guides import blocks_of

GUIDE = "arag_search/search/README.md"
USERS = ("ann", "bob")
QUERIES = ("opera", "opera AND canal", "title:page", "nothing AND opera")
UPDATES = 10


def test_the_loop_of_the_guide_answers_and_tells_the_model_of_its_mistakes(
    built_folder: Path,
) -> None:
    (block,) = [block for block in blocks_of(GUIDE) if "import openai" in block.text]
    names: dict[str, Any] = {}
    exec(compile(block.text, str(block), "exec"), names)
    with running_endpoint() as endpoint, open_index(built_folder / "my-index") as index:
        endpoint.answers = [
            completion(None, ("logical_search", '{"query": "a'), ("find_all", "{}")),
            completion(None, ("logical_search", '{"query": "the OR a"}')),
            completion("Done."),
        ]
        client = openai.OpenAI(base_url=endpoint.base_url, api_key="k", max_retries=0)
        assert names["ask"](index, client, "m", "Who?") == "Done."
    first, *_, last = endpoint.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["logical_search", "chunk_read"]
    replies = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert "not valid JSON" in replies[0]
    assert 'no tool "find_all"' in replies[1]
    assert "passage" in replies[2]


def test_replies_of_two_users_beside_updates_equal_those_of_one_alone(tmp_path: Path) -> None:
    location = tmp_path / "my-index"

    def records(number: int) -> str:
        file = tmp_path / f"{number}.jsonl"
        lines = (
            {"id": f"{user}{number}", "title": f"Page {number}", "acl": user,
             "text": f"An opera of {user} by canal {number}. It is number {number}."}
            for user in USERS
        )  # fmt: skip
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
        return str(file)

    def alone(index: arag_search.Index) -> dict[tuple[str, str], str]:
        return {(user, query): asked(index, user, query) for user in USERS for query in QUERIES}

    def asked(index: arag_search.Index, user: str, query: str) -> str:
        tools = arag_search.Toolbox(index, "logical_read", within={"acl": user})
        return tools.call("logical_search", {"query": query}).text

    options = index_jobs.BuildOptions(metadata={"acl": "keyword"}, language="en")
    index_jobs.build_index([records(0)], location, options)
    states: list[dict[tuple[str, str], str]] = []
    replies: list[tuple[tuple[str, str], str]] = []
    calls = [(user, query) for user in USERS for query in QUERIES] * 13
    with open_index(location, refresh="auto") as index, ThreadPoolExecutor(16) as pool:
        for number in range(UPDATES + 1):
            batch = calls[number :: UPDATES + 1]
            waiting = [pool.submit(asked, index, *call) for call in batch]
            if number:
                index_jobs.add([records(number)], location)
            replies += zip(batch, (reply.result() for reply in waiting), strict=True)
            with open_index(location) as now:
                states.append(alone(now))
    assert len(replies) >= 100
    assert all(any(state[call] == text for state in states) for call, text in replies)
    assert all("bob" not in text for (user, _), text in replies if user == "ann")
    assert len({text for _, text in replies}) > len(USERS) * len(QUERIES)
