"""What is told of the parts of a query, the same from Lucene and from the oracle."""

from __future__ import annotations

from pathlib import Path
from random import Random

from arag_search.search.advice.told import MAX_RARE
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.results import SearchResult
from bench.data import SAMPLE
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.examples import examples
from tests.support.oracle.engine import MemoryEngine
from tests.support.pages import check_random_pages, random_query

WORDS = ("died", "born", "he", "his", "first", "that", "with", "is", "from", "which", "at", "by")


def test_counts_titles_and_passages_of_parts_are_those_of_the_oracle(tmp_path: Path) -> None:
    random = Random(5)
    build_index([str(SAMPLE / "corpus.jsonl")], tmp_path / "index", BuildOptions())
    with open_index(tmp_path / "index") as lucene:
        oracle = Index(MemoryEngine(lucene.scan()), "the oracle")
        replies = 0
        for _ in range(examples(200)):
            query, top_k = random_query(random), random.choice((1, 2, 5))
            result = lucene.logical_search(query, top_k=top_k, relax=True, branches=True)
            expected = oracle.logical_search(query, top_k=top_k, relax=True, branches=True)
            assert _told(result) == _told(expected), query
            replies += bool(result.branches)
        assert replies > 3


def test_pages_of_an_or_show_each_match_once_whatever_takes_the_last_places(tmp_path: Path) -> None:
    build_index([str(SAMPLE / "corpus.jsonl")], tmp_path / "index", BuildOptions())
    with open_index(tmp_path / "index") as index:
        assert check_random_pages(index, Random(7), examples(200)) > 1


def test_words_beside_a_name_bring_no_passages_where_every_space_is_an_or(tmp_path: Path) -> None:
    build_index([str(SAMPLE / "corpus.jsonl")], tmp_path / "index", BuildOptions())
    with open_index(tmp_path / "index") as index:
        query = '"carlo goldoni" evangeline'
        apart = index.logical_search(query, top_k=1, branches=True)
        plain = index.logical_search(query, top_k=1, branches=True, operators=False)
    assert [part.branch for part in apart.unrepresented] == ["evangeline"]
    assert not plain.unrepresented
    assert [part.clause for part in plain.branches] == ['"carlo goldoni"']


def _told(result: SearchResult) -> tuple[object, ...]:
    return (
        result.branches,
        [(branch.id, branch.branch) for branch in result.unrepresented],
        [(near.id, near.lacks) for near in result.nearest],
    )


def test_what_no_passage_of_a_rare_name_has_is_what_the_oracle_says(tmp_path: Path) -> None:
    random, absences = Random(3), 0
    build_index([str(SAMPLE / "corpus.jsonl")], tmp_path / "index", BuildOptions())
    with open_index(tmp_path / "index") as lucene:
        passages = list(lucene.scan())
        oracle = Index(MemoryEngine(passages), "the oracle")
        words = [word for word in WORDS if (oracle.logical_search(word).total or 0) > MAX_RARE]
        for _ in range(200):
            name = f'"{random.choice(passages).title}"'
            query = f"{name} {random.choice(('OR', 'AND'))} {random.choice(words)}"
            absent = lucene.logical_search(query, branches=True).absent
            assert absent == oracle.logical_search(query, branches=True).absent, query
            for absence in absent:
                absences += 1
                assert oracle.logical_search(absence.name).total == absence.passages
                for word in absence.words:
                    assert not oracle.logical_search(f"{absence.name} AND {word}").total
    assert absences > 20
