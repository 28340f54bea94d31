"""What the prompt makes of typed text."""

from __future__ import annotations

from prompt_toolkit.document import Document

from sparkfusion.cli.shell.prompt import STYLE, sql_lexer


def test_statements_are_highlighted() -> None:
    line_of = sql_lexer().lex_document(Document("select 'two', 12 -- why\nfrom items;"))
    parts = [*line_of(0), *line_of(1)]
    colours = {part[1]: STYLE.get_attrs_for_style_str(part[0]).color for part in parts}
    shown = {text: colours[text] for text in ("select", "from", "'two'", "12", "-- why", "items")}
    assert shown == {
        "select": "ansiblue",
        "from": "ansiblue",
        "'two'": "ansigreen",
        "12": "ansicyan",
        "-- why": "ansibrightblack",
        "items": "",
    }
