"""--dry-run estimates a build from a sample of its sources, and writes nothing."""

import gzip
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, SourceError
from index_jobs.build.estimate import SAMPLE_DOCUMENTS, estimate
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import (
    PLAIN,
    corpus,
    in_own_folder,  # noqa: F401
    troublesome_corpus,
)
from tests.support.commands import Command
from tests.support.shared_data import DATA

ADDRESS = "http://127.0.0.1:1/arag-x"  # No server listens there.


def test_a_small_corpus_is_counted_whole() -> None:
    sources = [corpus("a.jsonl", 300), corpus("b.jsonl", 20)]
    Path("b.jsonl").write_text(Path("b.jsonl").read_text().replace('"d', '"e'))
    forecast = estimate(sources, Path("index"), PLAIN)
    assert not Path("index").exists()
    manifest = build_index(sources, Path("index"), PLAIN)
    assert forecast.is_exact
    for name in ("documents", "chunks", "sentences", "tokens"):
        assert getattr(forecast, name) == getattr(manifest, name)


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_large_corpus_is_estimated_from_its_beginning(ending: str) -> None:
    documents = 3 * SAMPLE_DOCUMENTS
    corpus("a.jsonl", documents, words=8)
    if ending.endswith(".gz"):
        Path("a.jsonl.gz").write_bytes(gzip.compress(Path("a.jsonl").read_bytes(), 1))
    forecast = estimate([f"a{ending}"], Path("index"), PLAIN)
    assert not forecast.is_exact
    assert forecast.sampled_documents < documents / 2
    assert forecast.documents == pytest.approx(documents, rel=0.1)
    assert forecast.seconds > 0


def test_the_sample_of_a_folder_is_spread_over_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, words, count in (("a", 4, 700), ("b", 2_000, 300)):
        Path("docs", folder).mkdir(parents=True)
        for number in range(count):
            Path("docs", folder, f"{number:03}.md").write_text("The sea is wide. " * (words // 4))
    monkeypatch.setattr("index_jobs.build.estimate.SAMPLE_DOCUMENTS", 200)
    forecast = estimate(["docs"], Path("index"), PLAIN)
    assert not forecast.is_exact
    assert forecast.sampled_documents < 300
    assert forecast.documents == pytest.approx(1_000, rel=0.1)
    manifest = build_index(["docs"], Path("index"), PLAIN)
    assert forecast.chunks == pytest.approx(manifest.chunks, rel=0.1)
    assert "sample: 2" in forecast.to_text()


def test_sources_of_different_kinds_are_scaled_separately() -> None:
    corpus("short.jsonl", 9_000, words=4)
    Path("long.md").write_text("The sea is wide. " * 30_000)
    forecast = estimate(["short.jsonl", "long.md"], Path("index"), PLAIN)
    assert forecast.documents == pytest.approx(9_001, rel=0.05)


@pytest.mark.shared_data
def test_the_size_of_an_index_is_estimated_to_within_a_third() -> None:
    source = str(DATA / "musique/corpus.jsonl")
    forecast = estimate([source], Path("index"), PLAIN)
    build_index([source], Path("index"), PLAIN)
    files = [path for path in Path("index/g1").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    assert forecast.index_bytes == pytest.approx(size, rel=1 / 3)
    on_server = estimate([source], ADDRESS, PLAIN)
    smaller = estimate([source], ADDRESS, BuildOptions(without=("sentences", "exact")))
    assert on_server.index_bytes > 1.5 * forecast.index_bytes > 2 * smaller.index_bytes


def test_bad_records_of_the_sample_are_reported() -> None:
    forecast = estimate([troublesome_corpus("a.jsonl", 30)], ADDRESS, PLAIN)
    assert forecast.bad_records == 4
    assert forecast.bad_examples[3] == 'a.jsonl, line 12: Duplicate id "d1": two records have it.'
    assert "in the sample: 4 bad records\n  a.jsonl, line 9: " in forecast.to_text()


def test_a_dry_run_refuses_what_a_build_refuses() -> None:
    corpus("a.jsonl", 1)
    with pytest.raises(ArgumentError):
        estimate(["a.jsonl"], Path("index"), BuildOptions(shards=2))
    with pytest.raises(ArgumentError):
        estimate(["a.jsonl"], "http://localhost:9200/", PLAIN)
    with pytest.raises(ArgumentError, match="is not an address"):
        estimate(["a.jsonl"], Path("index"), BuildOptions(ray="nowhere"))
    Path("folder").mkdir()
    with pytest.raises(SourceError) as caught:
        estimate(["folder"], Path("index"), PLAIN)
    assert str(caught.value) == (
        "The sample holds no document.\nWhere: folder\n"
        "Do: Name a folder with files that can be read, or files of records; see --include."
    )


def test_the_command_estimates_and_writes_nothing(arag: Command) -> None:
    corpus("a.jsonl", 50)
    before = sorted(Path().iterdir())
    done = arag("index", "a.jsonl", "--to", ADDRESS, "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith(
        f"Nothing was written. {ADDRESS} would hold 50 documents in 50 chunks, 150 sentences, "
    )
    assert done.lines[1].startswith("sample: all of 1 source, 0.0 of 0.0 MB")
    report = arag("index", "a.jsonl", "--to", "index", "--dry-run", "--json").json
    assert (report["documents"], report["engine"], report["is_exact"]) == (50, "lucene", True)
    assert sorted(Path().iterdir()) == before
