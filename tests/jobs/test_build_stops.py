"""The same command resumes a build that was stopped; a build takes as much memory as it needs.

What a kill and a full disk leave: ``test_random_kills``.
"""

import subprocess
from pathlib import Path

import pytest

from arag_search.engines.lucene.location import hold_live
from arag_search.errors import IndexNotFoundError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import (
    PLAIN,
    InterruptingProgress,
    command,
    contents,
    corpus,
    in_own_folder,  # noqa: F401
    same_index,
)


@pytest.fixture(scope="module", autouse=True)
def memory_children(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "list[subprocess.Popen[str]]":
    """Start builds of a corpus and of one ten times as large, without workers and with two. They
    run beside the other tests."""
    name = "test_memory_does_not_grow_with_the_corpus"
    if all(item.name != name for item in request.session.items):
        return []
    folder = tmp_path_factory.mktemp("memory")
    sources = {size: corpus(str(folder / f"c{size}.jsonl"), size) for size in (200, 2000)}
    return [
        command(
            "MEMORY",
            source,
            interval_s=15,
            workers=workers,
            to=f"index{workers}-{size}",
            folder=folder,
        )
        for workers in (0, 2)
        for size, source in sources.items()
    ]


def test_after_ctrl_c_the_same_command_resumes_and_ends_with_the_same_index() -> None:
    corpus("c.jsonl", 300)
    stopping = InterruptingProgress(100)
    with pytest.raises(KeyboardInterrupt):
        build_index(["c.jsonl"], Path("index"), PLAIN, stopping)
    assert stopping.notes == [
        "c.jsonl: recognised as documents",
        "Stopped. Run the same command again: it resumes after 128 documents.",
    ]
    with pytest.raises(IndexNotFoundError, match=r"^A build of the index has begun and not fin"):
        hold_live(Path("index"))
    progress = InterruptingProgress(1000)
    report = build_index(["c.jsonl"], Path("index"), PLAIN, progress)
    assert progress.notes[1:] == [
        "Resuming: after 128 documents, nothing has changed since it was stopped."
    ]
    assert (report.continued, report.documents, report.seconds > report.run_seconds) == (
        128,
        300,
        True,
    )
    build_index(["c.jsonl"], Path("whole"), PLAIN)
    assert same_index("index") == same_index("whole")


def test_a_build_whose_source_or_options_changed_starts_over_and_says_so() -> None:
    corpus("c.jsonl", 200)
    with pytest.raises(KeyboardInterrupt):
        build_index(["c.jsonl"], Path("index"), PLAIN, InterruptingProgress(100))
    corpus("c.jsonl", 100)
    progress = InterruptingProgress(1)
    with pytest.raises(KeyboardInterrupt):
        build_index(["c.jsonl"], Path("index"), PLAIN, progress)
    assert progress.notes[1] == "Starting over: changed since it was stopped: the sources."
    report = build_index(["c.jsonl"], Path("index"), BuildOptions(language="en", chunk_tokens=500))
    assert report.why == "changed since it was stopped: `chunk_tokens`"
    assert (report.continued, len(contents("index")[1])) == (0, 100)


@pytest.mark.long
def test_memory_does_not_grow_with_the_corpus(
    memory_children: "list[subprocess.Popen[str]]",
) -> None:
    peaks: list[int] = []
    for child in memory_children:
        output, errors = child.communicate()
        assert child.returncode == 0, errors
        peaks.append(int(output.split("peak ")[1]))
    assert peaks[1] <= 1.2 * peaks[0]
    assert peaks[3] <= 1.2 * peaks[2], "with workers"
