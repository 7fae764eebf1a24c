"""All pages of a query, as a model reads them, beside the matches of the query."""

from __future__ import annotations

import re
from random import Random

from arag_search.search.index import Index
from arag_search.tools.preset_files import changed_preset, load_preset
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of

_MORE = re.compile(r"More: after=(\S+)\.\Z")
LEAVES = (
    "vivaldi", "opera", "venice", "libretto", "griselda", "poet", '"antonio vivaldi"', "bridge",
    '"carlo goldoni"', "title:venice", "evangeline", '"red priest"', "composer", "nowhere",
)  # fmt: skip
"""What queries on the sample corpus are made of."""
_ANDS = ("(vivaldi AND venice)", "(opera AND libretto)", "(poet AND bridge)", "(bridge NOT venice)")


def random_query(random: Random, depth: int = 0) -> str:
    """Return a query of nested groups on the sample corpus."""
    if depth > 1 or random.random() < 0.3:
        return random.choice(LEAVES)
    operator = random.choice((" AND ", " OR "))
    return (
        f"({operator.join(random_query(random, depth + 1) for _ in range(random.choice((2, 3))))})"
    )


def check_random_pages(index: Index, random: Random, queries: int) -> int:
    """Check that the pages of ORs, read on after what the last one says, show each match once.
    Return how many first pages are in another order than that of scores."""
    placed = 0
    for _ in range(queries):
        query = " OR ".join(random.choices([*LEAVES, *_ANDS], k=random.randint(3, 4)))
        changes = {"max_result_tokens": random.choice((256, 2_000)), "pointers": 0}
        preset = changed_preset(load_preset("logical_read"), changes, "test")
        tool = tools_of(preset, index)["logical_search"]
        in_order = [hit.id for hit in index.logical_search(query, top_k=1_000).hits]
        shown: list[str] = []
        after, size = "", random.randint(2, 4)
        while True:
            reply = tool.run({"query": query, "top_k": size, "after": after}, ReadSet())
            assert reply.status == "ok" or not in_order, (query, reply.text)
            assert reply.total in (len(in_order), 1_000)
            shown += reply.ids
            placed += not after and list(reply.ids) != in_order[: len(reply.ids)]
            if (more := _MORE.search(reply.text)) is None:
                break
            after, size = more[1], random.randint(2, 4)
        assert sorted(shown) == sorted(in_order), (query, set(in_order) ^ set(shown))
    return placed
