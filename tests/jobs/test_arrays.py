"""Bad items of a JSON array, in a build."""

from pathlib import Path

from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import in_own_folder  # noqa: F401


def test_bad_items_can_be_skipped_and_are_counted() -> None:
    Path("c.json").write_text('[{"text": "one sea"}, {"text": "two},\n {"text": 3}, {"id": 4}]')
    report = build_index(["c.json"], "index", BuildOptions(skip_bad_lines=True))
    assert (report.documents, report.skipped_lines) == (1, 3)
