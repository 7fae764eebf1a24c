"""Lucene finds in rows what a loop over them finds, and keeps every document of a batch."""

import pytest

from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.scans import check_batches, check_scan

pytestmark = pytest.mark.usefixtures("in_own_folder")


def test_not_beside_fields_and_scopes_finds_what_a_loop_over_the_rows_finds() -> None:
    check_scan("index")


def test_documents_are_counted_in_and_out_in_batches_of_any_size() -> None:
    check_batches("index")
