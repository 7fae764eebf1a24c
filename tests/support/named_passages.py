"""Passages that name each other, and what replies to random trees may point to in them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from arag_search.corpus import Chunk
from arag_search.search.index import Index
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset import plain_preset
from arag_search.tools.replies.pointers import POINTED
from arag_search.tools.replies.spans import check_spans
from arag_search.tools.tool import ReadSet
from tests.support.passages import chunk

NAMES = ("Antonio Vivaldi", "Venice", "Carlo Goldoni", "La Griselda", "Opera House")
_LEAVES = (
    "opera", "poet", "he", "venice", "griselda", "an of", '"antonio vivaldi"', "title:venice",
    '"la griselda in"', "nowhere", "opera*", "lang:it",
)  # fmt: skip


def chunks_with_names(random: Random) -> list[Chunk]:
    """Return passages whose titles are names, and whose sentences have some."""
    chunks: list[Chunk] = []
    for number in range(12):
        sentences = [
            f"{random.choice(('An opera', 'The poet', 'He'))} of {random.choice(NAMES)} in "
            f"{random.choice(NAMES)}. "
            for _ in range(random.randint(1, 4))
        ]
        lang = random.choice(("en", "it"))
        title = random.choice((*NAMES, ""))
        chunks.append(chunk(1_000 + number, f"d{number}", title, *sentences, lang=lang))
    return chunks


def _tree(random: Random, depth: int = 0) -> str:
    if depth > 1 or random.random() < 0.3:
        return random.choice(_LEAVES)
    operator = random.choice((" AND ", " OR ", " NOT ", " PREFER "))
    return f"({_tree(random, depth + 1)}{operator}{_tree(random, depth + 1)})"


def check_pointers(
    index: Index, chunks: Sequence[Chunk], random: Random, scope: str | None
) -> None:
    """Check that no reply to random trees, in one conversation, points to a passage out of scope,
    to one that was shown, or to one twice, and that its words are those of its text."""
    passages = {chunk.id: chunk for chunk in chunks}
    tool, read_set = LogicalSearch(index, plain_preset(pointers=5)), ReadSet()
    for query in ("opera", "poet", *(_tree(random) for _ in range(6))):
        before = set(read_set.seen)
        result = tool.run({"query": query, "top_k": 2}, read_set)
        check_spans(result.passages, result.text)
        ids = [span.id for span in result.passages]
        assert len(ids) == len(set(ids)), query
        for span in result.passages:
            if span.kind != "pointer":
                continue
            passage = passages[span.id]
            assert scope is None or passage.metadata["lang"] == "en"
            assert span.id not in before
            shown = span.text_in(result.text)
            sentences = [passage.sentences()[n - 1] for n in span.sentences or ()]
            assert shown in "".join(sentences)
            assert f"{POINTED}[" in result.text[: span.start + 1].rpartition("\n")[2]
