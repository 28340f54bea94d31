"""The page draws a model without a network. Where a browser is installed, it has to draw it there."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sparkfusion.observe.page import render_page
from sparkfusion.observe.query_model import build_model
from tests.unit.observe.browser import draw_in_browser, find_browser
from tests.unit.observe.lines import ended, large_run, planned

STAGES = 30


class _Elements(HTMLParser):
    """The elements of a page and their attributes, and the texts of its scripts by id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.found.append((tag, attributes))
        self._script = attributes.get("id", "") if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._script = None if tag == "script" else self._script

    def of_class(self, name: str) -> list[dict[str, str]]:
        return [attributes for _, attributes in self.found if name in attributes.get("class", "").split()]


def model_in(page: str) -> dict[str, Any]:
    model: dict[str, Any] = json.loads(_Elements(page).scripts["model"])
    return model


def test_the_data_in_the_page_are_the_model() -> None:
    model = build_model(large_run(STAGES))
    page = render_page(model)
    assert model_in(page) == model
    assert [tag for tag, _ in _Elements(page).found].count("script") == 2, "no text of the query may end its script"
    assert "<img" not in page


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = render_page(build_model(large_run(STAGES)))
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "the name of a namespace, which nobody loads"
    assert "default-src 'none'" in page
    assert not [name for _, attributes in _Elements(page).found for name in attributes if name in ("src", "href")]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """The large page as a browser draws it; None if no browser is installed."""
    browser = find_browser()
    page = render_page(build_model(large_run(STAGES)))
    return draw_in_browser(browser, page, tmp_path_factory.mktemp("page")) if browser is not None else None


def test_a_browser_draws_every_stage_exchange_and_attempt(drawn: str | None) -> None:
    model = build_model(large_run(STAGES))
    ran = [each for each in model["attempts"] if "started_at" in each]
    assert len(ran) == 2 * STAGES + 1
    if drawn is None:  # what it would draw is there
        assert len(model["stages"]) == STAGES
        return
    elements = _Elements(drawn)
    assert ("html", "yes") in [(tag, attributes.get("data-drawn")) for tag, attributes in elements.found]
    assert {int(node["data-stage"]) for node in elements.of_class("node")} == set(range(STAGES + 1))
    edges = {
        (int(edge["data-from"]), int(edge["data-to"])) for edge in elements.of_class("edge") if "data-from" in edge
    }
    reads = [(each, stage["id"]) for stage in model["stages"] for each in stage["inputs"]]
    assert edges == {*reads, *((each, 0) for each in model["head"]["inputs"])}
    assert len(elements.of_class("attempt")) == len(ran)
    assert any("failed" in each["class"] for each in elements.of_class("attempt"))
    assert not elements.of_class("error")


def test_a_browser_draws_edges_as_wide_as_their_bytes(drawn: str | None) -> None:
    model = build_model(large_run(STAGES))
    sizes = {each["stage"]: each["bytes"] for each in model["metrics"]}
    assert len(set(sizes.values())) == STAGES
    if drawn is None:
        return
    edges = [edge for edge in _Elements(drawn).of_class("edge") if "data-from" in edge]
    widths = sorted((sizes[int(edge["data-from"])], float(edge["stroke-width"])) for edge in edges)
    assert [width for _, width in widths] == sorted(width for _, width in widths)
    assert widths[-1][1] > 3 * widths[0][1]


def test_a_browser_shows_text_as_text(drawn: str | None) -> None:
    text = model_in(render_page(build_model(large_run(STAGES))))["query"]["text"]
    assert "</script>" in text
    if drawn is not None:
        assert not [tag for tag, _ in _Elements(drawn).found if tag == "img"]
        assert "&lt;/script&gt;&lt;img src=x" in drawn
        assert "too &lt;large&gt;" in drawn


def test_a_query_that_is_not_distributed_has_its_reason_and_plan(tmp_path: Path) -> None:
    line = planned() | {"single_node": ["ProjectionExec", "  PlaceholderRowExec"]}
    page = render_page(build_model([line, ended()]))
    assert model_in(page)["plan"] == ["ProjectionExec", "  PlaceholderRowExec"]
    browser = find_browser()
    if browser is not None:
        shown = draw_in_browser(browser, page, tmp_path)
        assert "Not distributed: it reads no data" in shown
        assert 'id="plan">ProjectionExec' in shown
