"""The same command resumes an embedding that was killed or ran out of disk space, and nothing
wrong is published."""

import random
import signal
import time
from pathlib import Path

import pytest

from arag_search.vectors.storage.folders import sidecars
from index_jobs.embedding.job import WORK, embed_index
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.embeddings import ENCODER, SMALL, build_small_index, check_embedded, command
from tests.support.examples import examples, some_of

ROOT = Path("index/vectors")


@pytest.mark.parametrize("workers", some_of([2, 0]))
def test_an_embedding_killed_repeatedly_resumes_and_ends_with_the_same_vectors(
    workers: int,
) -> None:
    build_small_index(120)
    chance = random.Random(workers)
    for rows in (60, 100):
        child = command("SLOW", 0, workers=workers)
        assert child.stdout is not None
        while int(child.stdout.readline()) < rows:
            pass
        time.sleep(chance.uniform(0, 0.05))
        child.kill()
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        assert list(sidecars(ROOT)) == []
    report = embed_index("index", ENCODER, SMALL)
    assert report.continued_shards >= 2
    assert report.remade_shards == 0
    check_embedded("index")


def test_a_kill_at_any_step_of_publishing_publishes_all_or_nothing() -> None:
    build_small_index(40)
    child = command("PUBLISH", 0)
    output, errors = child.communicate()
    assert child.returncode == 0, errors
    calls = int(output.split("calls ")[1].split()[0])
    check_embedded("index")
    moments = random.Random(3).sample(range(1, calls + 1), min(calls, examples(30)))
    for moment in moments:
        (path,) = ROOT.glob("*/")
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
        child = command("PUBLISH", moment)
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        if list(sidecars(ROOT)):
            check_embedded("index")
        report = embed_index("index", ENCODER, SMALL)
        assert report.encoded_rows == 0
        check_embedded("index")
        assert not (ROOT / WORK).exists()


def test_a_full_disk_is_reported_and_the_same_command_resumes() -> None:
    build_small_index(40)
    child = command("LIMIT", 2_000)
    _, errors = child.communicate()
    assert child.returncode == 1
    # A slow machine also prints its progress.
    lines = [line for line in errors.splitlines() if not line.startswith("reading passages: ")]
    assert lines == [
        f"Loading the encoder {ENCODER}.",
        "There is no space left to write the vectors (File too large).",
        "Where: index/vectors/embedding",
        "Do: Free some space and run the same command again: it starts over.",
    ]
    assert list(sidecars(ROOT)) == []
    embed_index("index", ENCODER, SMALL)
    check_embedded("index")
