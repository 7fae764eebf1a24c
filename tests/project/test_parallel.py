"""Workers share the tests, and only one of them starts what is expensive to start."""

from pathlib import Path

import pytest

from tests.support import parallel

TESTS = Path(__file__).parents[1]


def test_all_modules_that_ask_for_the_cluster_or_the_model_go_to_the_same_worker() -> None:
    modules = [str(path.relative_to(parallel.ROOT)) for path in sorted(TESTS.rglob("test_*.py"))]
    groups = {module: parallel.group_of(module) for module in modules}
    assert groups["tests/opensearch/test_engine.py"] == "opensearch"
    assert groups["tests/opensearch/test_faults.py"] == "opensearch_cluster"
    assert groups["tests/vectors/test_semantic_model.py"] == "model"
    assert groups["tests/jobs/test_build.py"] == "tests/jobs/test_build.py"
    for group, folder in (("opensearch", "opensearch"), ("model", "vectors")):
        members = [module for module in modules if groups[module] == group]
        assert len(members) > 3
        assert {module.split("/")[1] for module in members} == {folder}


@pytest.mark.parametrize(
    ("arguments", "cores", "workers"),
    [
        ([TESTS], 2, 2),
        ([TESTS / "unit" / "query", TESTS / "cli"], 8, 2),
        ([TESTS], 1, 0),
        ([TESTS / "conftest.py"], 2, 0),
        ([TESTS / "unit", f"{TESTS}/cli/test_app.py::test_x"], 2, 0),
    ],
)
def test_workers_are_started_for_whole_folders_where_there_are_cores_for_them(
    arguments: list[object], cores: int, workers: int
) -> None:
    assert parallel.worker_count([str(argument) for argument in arguments], cores) == workers
