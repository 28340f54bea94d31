"""One HTML page that draws a query's model. It needs no network: data, styles and scripts are in it.

The scripts read only the model, so a page that receives models while a query runs can use the same scripts.
"""

from __future__ import annotations

import html
from functools import cache
from importlib.resources import files
from typing import Any

from sparkfusion.observe.log_lines import to_json

_SCRIPTS = ("format.js", "facts.js", "layout.js", "graph.js", "timeline.js", "details.js", "main.js")


def render_page(model: dict[str, Any]) -> str:
    """The page of a query. `model` is the result of `build_model`; strings in it may contain any characters."""
    data = to_json(model).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {
        "title": html.escape(f"Query {model['query']['id']}".strip()),
        "style": _read("page.css"),
        "script": "\n".join(map(_read, _SCRIPTS)),
        "model": data,
    }
    page = _read("page.html")
    for name, text in parts.items():  # the data come last, so they are not searched for marks
        page = page.replace(f"@{name}@", text, 1)
    return page


@cache
def _read(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")
