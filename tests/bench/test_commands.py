"""The list of benches, and the shared handling of their command lines."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from bench import BenchError
from bench.__main__ import BENCHES, listing, main
from bench.arguments import BenchParser, command_line, names_from


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return listing().splitlines()


@pytest.mark.parametrize("name", BENCHES)
def test_every_bench_has_help_and_a_summary_of_one_sentence(
    name: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main([name, "--help"])
    assert exit.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m bench {name} ")
    assert callable(importlib.import_module(BENCHES[name]).main)
    (line,) = [line for line in lines if line.startswith(f"  {name} ")]
    summary = line.split(maxsplit=1)[1]
    assert re.fullmatch(r"[A-Z][^;.]*\.", summary), summary
    assert len(line) <= 100


def test_an_unknown_name_is_exit_code_2_with_the_known_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["pace"]) == 2
    error = capsys.readouterr().err
    assert error.startswith('There is no bench "pace".\nAllowed: ablate, ')
    assert error.endswith("Do: Run python -m bench for a list of what each one measures.\n")


def failing(error: BaseException, *, resumes: bool = False) -> int:
    def measure(*_: object) -> int:
        raise error

    return BenchParser("words", None, resumes=resumes).run([], measure)


def test_an_error_is_a_message_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(BenchError("The sides differ.", where="here")) == 1
    assert capsys.readouterr() == ("", "The sides differ.\nWhere: here\n")


def test_an_interrupt_is_exit_code_130_and_only_a_bench_that_resumes_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert failing(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "Interrupted.\n"
    assert failing(KeyboardInterrupt(), resumes=True) == 130
    assert capsys.readouterr().err == "Interrupted. Resume with: python -m bench words\n"


def test_a_list_of_names_drops_duplicates_and_rejects_what_is_not_a_choice() -> None:
    parse_names = names_from(("a", "b", "c"))
    assert parse_names("b,a,b") == ("b", "a")
    for text in ("a,d", ""):
        with pytest.raises(Exception, match="is not of a,b,c"):
            parse_names(text)


def test_a_command_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    assert command_line("words", ["--json", str(tmp_path / "w.json"), "--data", "../data"]) == (
        "python -m bench words --json w.json --data ../data"
    )
