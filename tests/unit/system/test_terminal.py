"""What a corpus, a model or a server wrote does not reach a terminal as commands to it."""

import pytest

from arag_search.system.terminal import visible
from tests.support.terminal import COMMANDS, OBEYED


@pytest.mark.parametrize("what", OBEYED)
def test_every_character_that_a_terminal_obeys_is_written_out(what: str) -> None:
    assert not COMMANDS.search(visible(OBEYED[what]))


def test_text_that_gives_no_commands_stays_as_it_is() -> None:
    text = "Il Vero,\tatto 2\nקול עברי \u200f ‘l’art’ 𝄞 e\u0301"
    assert visible(text) == text
    assert visible("two\r\nlines") == "two\nlines"
