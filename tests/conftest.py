"""What all tests share: a home of their own, and one cache of downloads."""

from collections.abc import Iterator

import hypothesis
import pytest

from arag_search.engines.lucene.jvm import CACHE_VARIABLE, cache_folder

# Decided before the home changes, so that tests and the processes they start download jars once.
_CACHE = str(cache_folder())


@pytest.fixture(autouse=True, scope="session")
def temporary_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the home of who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv(CACHE_VARIABLE, _CACHE)
        patch.delenv("XDG_CACHE_HOME", raising=False)
        yield


# A deadline would be a test of time, which a busy machine fails.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")
