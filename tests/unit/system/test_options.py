"""Options that are said once: their checks in Python, and how the command line writes them."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from arag_search.cli.app import run
from arag_search.cli.options.parser import as_options
from arag_search.errors import ArgumentError
from arag_search.system.options import options_of
from index_jobs import AddOptions, BuildOptions, EmbedOptions, SyncOptions
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields


@pytest.mark.parametrize(
    ("make", "what", "allowed"),
    [
        (lambda: BuildOptions(chunk_tokens=3), "`chunk_tokens`: 3 is out", "16 to 100,000"),
        (lambda: BuildOptions(chunk_tokens="3"), "`chunk_tokens`: '3' is of another type", "int"),  # type: ignore[arg-type]
        (lambda: BuildOptions(overwrite=1), "`overwrite`: 1 is of another type", "bool"),  # type: ignore[arg-type]
        (lambda: BuildOptions(workers=True), "`workers`: True is of another", "int | None"),
        (lambda: BuildOptions(without=("exact", "x")), '`without`: "x" is not known', "sentences"),
        (lambda: BuildOptions(without=["exact"]), "`without`: ['exact'] is of another", "tuple"),  # type: ignore[arg-type]
        (lambda: EmbedOptions(dtype="int8"), '`dtype`: "int8" is not known', "float32, float16"),  # type: ignore[arg-type]
        (lambda: EmbedOptions(batch_size=0), "`batch_size`: 0 is out of range", "1 or more"),
        (lambda: AddOptions(workers=65), "`workers`: 65 is out of range", "0 to 64"),
        (lambda: FileSelection(max_file_size=-1), "`max_file_size`: -1 is out", "0 or more"),
        (lambda: Fields(id_field=7), "`id_field`: 7 is of another type", "str | None"),  # type: ignore[arg-type]
    ],
)
def test_a_field_is_checked_where_it_is_said(
    make: Callable[[], object], what: str, allowed: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        make()
    assert caught.value.what.startswith(what)
    assert caught.value.allowed.startswith(allowed)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("`chunk_tokens`: 3", "--chunk-tokens: 3"),
        ("Use `overwrite=True`.", "Use --overwrite."),
        ("Or `embed=False`.", "Or --no-embed."),
        ('Use `format="text"`, `workers=0`.', "Use --format text, --workers 0."),
        ("with `exclude='src/**'`", "with --exclude 'src/**'"),
        ("The command `claude`, `x=1`", "The command `claude`, `x=1`"),
        ("chunk_tokens and a `tick", "chunk_tokens and a `tick"),
    ],
)
def test_the_command_line_writes_fields_as_options_and_nothing_else(
    said: str, written: str
) -> None:
    assert as_options(said) == written


@pytest.mark.parametrize("kind", [BuildOptions, AddOptions, SyncOptions, EmbedOptions])
def test_every_option_says_what_it_does_in_one_sentence(kind: type[Any]) -> None:
    named = {field.name for field in fields(kind)}
    for name, option in options_of(kind).items():
        assert name in named
        assert not option.help or option.help[0].isupper()


def test_a_file_that_is_called_like_a_field_keeps_its_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    place = tmp_path / "`overwrite=True`"
    assert run(["add", str(place), "--to", str(place)]) == 1
    assert f"Where: {place}" in capsys.readouterr().err
