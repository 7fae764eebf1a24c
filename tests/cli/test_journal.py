"""A command that appends lines to a file destroys nothing that somebody else wrote."""

from pathlib import Path

import pytest

from tests.support.commands import Command


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def test_ask_leaves_a_file_of_other_lines_as_it_is(
    arag: Command, commands_folder: Path, target: Path
) -> None:
    target.write_bytes(b"a note of mine")
    index = str(commands_folder / "my-index")
    done = arag("ask", index, "Who?", "--model", "offline", "--record", str(target))
    assert done.code == 1
    assert "The last line is neither a record nor a part of one." in done.err
    assert target.read_bytes() == b"a note of mine"
