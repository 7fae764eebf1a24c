"""The images, and a corpus with its right answers, for all tests with containers."""

from collections.abc import Iterator

import pytest

from tests.support.containers import Corpus, build_images, write_corpus
from tests.support.faults import known_answers


@pytest.fixture(scope="session", autouse=True)
def images() -> None:
    build_images()


@pytest.fixture(scope="session")
def corpus(images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder = tmp_path_factory.mktemp("corpus")
    file = write_corpus(folder / "corpus.jsonl")
    for parent in (folder, folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    with known_answers(file, folder / "index", 60) as known:
        yield Corpus(file, known)
