"""What `DataFrame.explain` returns: the plan to print, to save, or to draw in a notebook."""

from __future__ import annotations

import html
import importlib
import sys
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from sparkfusion.observe.explain import Explained, model_of, render_explain
from sparkfusion.observe.explain_formats import ExplainFormat
from sparkfusion.observe.page import render_page

_FRAME = (
    '<iframe srcdoc="{page}" sandbox="allow-scripts" title="query plan" '
    'style="box-sizing: border-box; width: 100%; height: 720px; border: 1px solid #8884; border-radius: 8px"></iframe>'
)


class Explanation:
    """How a query runs, or ran. `print` it, `save` it, or let a notebook draw it.

    `explain` prints texts itself, so a notebook draws nothing at the end of the cell that printed it. In a later cell,
    or after `explain(format="html")`, which prints nothing, it draws the page.
    """

    def __init__(self, explained: Explained, format: ExplainFormat) -> None:
        """`DataFrame.explain` makes them. Texts are printed."""
        self._format = format
        self._explained = explained
        self._printed_in: object = None
        if format != "html":
            print(self.text)
            self._printed_in = _running_cell()

    @cached_property
    def text(self) -> str:
        """The plan in its format.

        >>> print(orders.explain(format="json").text[:1])
        {
        ...
        """
        return render_explain(self._explained, self._format)

    @cached_property
    def model(self) -> dict[str, Any]:
        """The plan as data: the model that docs/explain.md describes.

        >>> orders.explain(format="html").model["distributed"]
        False
        """
        return model_of(self._explained)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file: as HTML if the name ends with `.html`, otherwise in its format.

        >>> orders.explain(format="html").save("plan.html")
        >>> Path("plan.html").read_text()[:15]
        '<!doctype html>'
        """
        page = Path(path).suffix.lower() in (".html", ".htm")
        Path(path).write_text(render_page(self.model) if page else self.text + "\n", encoding="utf-8")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        graph, reason = self._explained.distribution.graph, self._explained.distribution.reason
        shown = f"{len(graph.stages)} stages, {graph.task_count} tasks" if graph else f"not distributed: {reason}"
        return f"<Explanation: {shown}>"

    def _repr_html_(self) -> str:
        return _FRAME.format(page=html.escape(render_page(self.model)))

    def _ipython_display_(self) -> None:
        """Called at the end of a cell, before all other ways to show it."""
        if self._printed_in is not None and self._printed_in == _running_cell():
            return
        display = importlib.import_module("IPython.display")
        display.publish_display_data({"text/plain": repr(self), "text/html": self._repr_html_()})


def _running_cell() -> object:
    """What identifies the cell of IPython that runs now; None outside of IPython."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return (id(shell), shell.execution_count) if shell is not None else None
