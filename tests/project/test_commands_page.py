"""The page of commands has their help as it is printed today."""

from arag_search.cli.commands_page import PAGE, page


def test_the_page_of_commands_has_the_help_of_today() -> None:
    is_same = PAGE.read_text("utf-8") == page()
    assert is_same, "run python -m arag_search.cli.commands_page"
