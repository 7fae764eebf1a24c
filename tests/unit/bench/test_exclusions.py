"""Needs of the gold chain with an exclusion: what they exclude, and their queries."""

from __future__ import annotations

from arag_search.questions.question import Question
from bench.gold_chain.exclusions import needs_of
from bench.gold_chain.ground import Asked
from bench.gold_chain.names import Known
from tests.support.passages import VIVALDI, index_of


def asked(name: str, *evidence: str) -> Asked:
    question = Question("q", "Who revised it?", ("Goldoni",))
    known = Known(name, name, "revised by")
    return Asked(question, (known,), (dict.fromkeys(evidence, ("Goldoni",)),), ("title",))


def test_a_need_excludes_another_passage_that_mentions_its_name() -> None:
    index = index_of(*VIVALDI)
    ((need, query),) = needs_of(index, asked("Vivaldi", "vivaldi.1"))
    assert need.text == "Vivaldi revised by, but not Griselda"
    assert dict(need.relevant_documents) == {"griselda": -1, "vivaldi": 1}
    assert query == '"Vivaldi" NOT "Griselda"'
