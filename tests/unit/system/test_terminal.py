"""Text of a corpus, a model or a server does not reach a terminal as commands."""

import pytest

from arag_search.system.terminal import visible
from tests.support.terminal import COMMANDS, OBEYED


@pytest.mark.parametrize("name", OBEYED)
def test_every_control_character_of_a_terminal_is_escaped(name: str) -> None:
    assert not COMMANDS.search(visible(OBEYED[name]))


def test_text_without_commands_is_unchanged() -> None:
    text = "Il Vero,\tatto 2\nקול עברי \u200f ‘l’art’ 𝄞 e\u0301"
    assert visible(text) == text
    assert visible("two\r\nlines") == "two\nlines"
