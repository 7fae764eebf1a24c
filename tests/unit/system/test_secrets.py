"""Passwords and tokens come from a variable or from a file, never from both."""

from pathlib import Path

import pytest

from arag_search.engines.opensearch.address import ConnectionOptions
from arag_search.errors import ArgumentError
from arag_search.system.secrets import read_secret


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TEST_SECRET", raising=False)
    monkeypatch.setenv("TEST_SECRET_FILE", str(tmp_path / "secret"))
    return tmp_path / "secret"


def test_a_secret_is_the_text_of_its_file_without_the_end_of_the_line(file: Path) -> None:
    file.write_text("s3cret ünï\n", "utf-8")
    assert read_secret("TEST_SECRET") == "s3cret ünï"


def test_a_secret_is_the_value_of_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SECRET", " s3cret ")
    assert read_secret("TEST_SECRET") == " s3cret "
    assert read_secret("TEST_SECRET_THAT_IS_NOT_SET") == ""


def test_a_variable_beside_its_file_is_refused_unless_it_is_empty(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("s3cret")
    monkeypatch.setenv("TEST_SECRET", "")
    assert read_secret("TEST_SECRET") == "s3cret"
    monkeypatch.setenv("TEST_SECRET", "another")
    with pytest.raises(ArgumentError, match="Both TEST_SECRET and TEST_SECRET_FILE are set"):
        read_secret("TEST_SECRET")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_an_error_with_its_path(
    content: bytes | None, file: Path
) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ArgumentError, match="The file that TEST_SECRET_FILE names cannot") as error:
        read_secret("TEST_SECRET")
    assert error.value.where == str(file)


def test_the_password_of_a_cluster_may_be_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    monkeypatch.setenv("OPENSEARCH_USERNAME", "arag_search")
    monkeypatch.delenv("OPENSEARCH_PASSWORD", raising=False)
    monkeypatch.setenv("OPENSEARCH_PASSWORD_FILE", str(tmp_path / "password"))
    assert ConnectionOptions.from_environment().password == "s3cret"
