"""Paths as settings of clients, the environment and command lines give them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from arag_search.system.paths import given_path
from arag_search.system.secrets import read_secret
from arag_search.vectors.folder import VECTORS_VARIABLE, vectors_root


def test_a_tilde_is_the_home_folder_and_what_exists_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = os.environ["HOME"]
    assert given_path("~/s", "INDEX") == f"{home}/s"
    assert given_path("~", "INDEX") == home
    assert given_path("~root", "INDEX") == os.path.expanduser("~root") != "~root"
    for name in ("~$plan.docx", "${x}", "$HOME", "~"):
        (tmp_path / name).touch()
    for name in ("~$plan.docx", "${x}", "$HOME", "./~", "", "a$b", "cash$", "50%", "a/b~c", "~/s~"):
        assert given_path(name, "INDEX") == name.replace("~/", f"{home}/")
    assert given_path("https://host:9200/a%AB%20b", "INDEX") == "https://host:9200/a%AB%20b"


@pytest.mark.parametrize(
    ("path", "unexpanded"),
    [
        ("${HOME}/s", "${HOME}"),
        ("$HOME/s", "$HOME"),
        ("/home/$USER/s", "$USER"),
        ("${env:HOME}/s", "${env:HOME}"),
        ("~/${workspaceFolder}", "${workspaceFolder}"),
        ("%USERPROFILE%\\notes", "%USERPROFILE%"),
        ("~no-such-user/s", "~no-such-user"),
    ],
)
def test_a_variable_that_nobody_expanded_is_named(path: str, unexpanded: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        given_path(path, "--to")
    assert caught.value.where == f"--to: {path}"
    assert str(unexpanded) in caught.value.what


def test_paths_in_the_environment_are_taken_in_the_same_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (Path.home() / "secret").write_text("token\n")
    monkeypatch.setenv("TEST_FILE", "~/secret")
    assert read_secret("TEST") == "token"
    monkeypatch.setenv(CACHE_VARIABLE, "~/cache")
    assert cache_folder() == Path.home() / "cache"
    monkeypatch.setenv(VECTORS_VARIABLE, "${HOME}/v")
    with pytest.raises(ArgumentError, match=f"Where: {VECTORS_VARIABLE}: "):
        vectors_root("index")
