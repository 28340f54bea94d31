"""What `explain` returns: printed once, wherever it is called."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import sparkfusion
from sparkfusion import DataFrame, Explanation

QUERY = "select x % 2 as odd, count(*) as n from t group by 1"


@pytest.fixture
def frame(tmp_path: Path) -> Iterator[DataFrame]:
    settings = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 2}
    with sparkfusion.connect(config={**settings, "sparkfusion.task_cores": 1}) as session:
        session.from_pydict({"x": [1, 2, 3, 4]}, name="u")
        session.sql("select x from u").write_parquet(tmp_path / "t")
        session.sql("select x from u").write_parquet(tmp_path / "t")
        session.register_parquet("t", tmp_path / "t")
        yield session.sql(QUERY)


class _Notebook:
    """What `explain` meets in a notebook: a shell that counts cells, and takes what is displayed."""

    def __init__(self) -> None:
        self.execution_count = 1
        self.displayed: list[dict[str, str]] = []

    def run_cell(self, value: Explanation) -> None:
        """A cell whose last line is this value: IPython asks this method first, and then nothing else."""
        value._ipython_display_()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> _Notebook:
    shell = _Notebook()
    module, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(module)["get_ipython"] = lambda: shell
    vars(display)["publish_display_data"] = shell.displayed.append
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shell


def test_explain_returns_what_it_prints(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    shown = frame.explain()
    printed = capsys.readouterr().out
    assert printed == f"{shown}\n"
    assert printed == f"{frame.explain_text()}\n"
    assert repr(shown) == "<Explanation: 2 stages, 4 tasks>"


def test_a_page_is_returned_and_not_printed(
    frame: DataFrame, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shown = frame.explain(analyze=True, format="html")
    assert capsys.readouterr().out == ""
    shown.save(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text() == shown.text
    assert shown.text.startswith("<!doctype html>")
    assert shown.model["query"]["text"] == QUERY


def test_a_text_is_saved_as_it_is_and_as_a_page(frame: DataFrame, tmp_path: Path) -> None:
    shown = frame.explain(format="json")
    shown.save(tmp_path / "plan.json")
    shown.save(tmp_path / "plan.HTML")
    assert json.loads((tmp_path / "plan.json").read_text()) == shown.model
    assert (tmp_path / "plan.HTML").read_text().startswith("<!doctype html>")


def test_html_for_a_notebook_is_a_frame_that_can_do_nothing_else(frame: DataFrame) -> None:
    found = frame.explain()._repr_html_()
    assert found.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert 'sandbox="allow-scripts"' in found
    assert found.count("<") == 2  # of the frame itself


def test_a_notebook_shows_nothing_twice(
    frame: DataFrame, notebook: _Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = frame.explain()
    notebook.run_cell(printed)  # the cell that printed it ends with it
    assert capsys.readouterr().out.count("distributed: 2 stages") == 1
    assert notebook.displayed == []
    notebook.execution_count += 1
    notebook.run_cell(printed)  # a later cell asks for it
    assert "<iframe" in notebook.displayed[0]["text/html"]
    assert notebook.displayed[0]["text/plain"] == repr(printed)


def test_a_notebook_draws_a_page_in_the_cell_that_asks_for_it(
    frame: DataFrame, notebook: _Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.run_cell(frame.explain(format="html"))
    assert len(notebook.displayed) == 1
    assert capsys.readouterr().out == ""


def test_the_page_of_two_queries_at_once_has_its_own_events(frame: DataFrame) -> None:
    with frame.stream() as other:
        model: dict[str, Any] = frame.explain(analyze=True, format="html").model
        assert model["query"]["id"] != other.id
        tasks = [each for each in model["attempts"] if each["stage"]]
    assert [(each["stage"], each["task"]) for each in tasks] == [(1, 0), (1, 1), (2, 0)]  # each of them once
    assert {each["outcome"] for each in tasks} == {"finished"}


def test_nothing_here_needs_ipython(frame: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # imported, and no shell
    assert str(frame.explain()).startswith("distributed: 2 stages")
