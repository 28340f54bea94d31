"""The page of the command line lists what the code has."""

from __future__ import annotations

from tests.docs import cli_page


def test_the_page_of_the_command_line_is_what_help_prints() -> None:
    assert cli_page.PAGE.read_text() == cli_page.render(), "python -m tests.docs.cli_page writes it"
