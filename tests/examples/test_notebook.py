"""The example notebook, executed by a real kernel: what it shows, and what a few more cells do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
EXECUTE = Path(__file__).with_name("execute_notebook.py")
PATIENCE = 280.0

MORE = {
    "wrong": "%%sparkfusion\nselect nothing from orders",
    "broken": "%%sparkfusion\nselect 1;\nselect 1 / (id - id) as x from orders",
    "wrong line": "%sparkfusion --to",
    "printed": "print(dear.limit(1))",
    "progress": "import sparkfusion.notebook\n"
    "stop = sparkfusion.notebook.show_progress(session, shown_after=0)\n"
    "rows = session.sql('select count(*) from orders a join orders b using (id)').collect()\n"
    "stop()",
    "other": "other = sparkfusion.connect()\n"
    "%sparkfusion --session other --progress off create table t as select 7 as n",
    "from other": "%%sparkfusion --session other\nselect n from t",
    "explained": "%%sparkfusion\nexplain select city from orders",
    "unloaded": "other.close()\n%unload_ext sparkfusion\nget_ipython().find_line_magic('sparkfusion') is None",
    "process": "import os\nprint(os.getpid())",
}
"""Cells that run before the last one of the example, which closes its session."""

Outputs = list[dict[str, Any]]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outputs]:
    """What each code cell shows: the example's by number, from 0, and ours by name."""
    home = tmp_path_factory.mktemp("notebook")
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in code), "the example is kept without outputs"
    more: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"more-{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": s,
        }
        for number, s in enumerate(MORE.values())
    ]
    notebook["cells"][-1:-1] = more
    (home / "in.ipynb").write_text(json.dumps(notebook))
    places = {"JUPYTER_RUNTIME_DIR": "run", "JUPYTER_CONFIG_DIR": "config", "IPYTHONDIR": "ipython", "TMPDIR": "tmp"}
    (home / "tmp").mkdir()
    environment = {**os.environ, **{name: str(home / place) for name, place in places.items()}}
    command = [sys.executable, str(EXECUTE), str(home / "in.ipynb"), str(home / "out.ipynb")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert list((home / "tmp").iterdir()) == []
    executed = [cell for cell in json.loads((home / "out.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    names = [*map(str, range(len(code) - 1)), *MORE, "last"]
    return {name: cell["outputs"] for name, cell in zip(names, executed, strict=True)}


def text(outputs: Outputs) -> str:
    """Everything that a cell shows, as plain text."""
    parts = [part for each in outputs for part in (each.get("text"), each.get("data", {}).get("text/plain")) if part]
    return "\n".join("".join(part) for part in parts)


def rows_of(outputs: Outputs) -> Outputs:
    """What is no progress: on a busy machine, any query may take long enough to show it."""
    return [each for each in outputs if re.match(r"(done in )?\d+\.\d s\b", text([each])) is None]


def test_no_cell_of_the_example_fails(outputs: dict[str, Outputs]) -> None:
    failed = {name for name, cell in outputs.items() if any(each["output_type"] == "error" for each in cell)}
    assert failed == {"wrong", "broken", "wrong line"}


def test_a_cell_of_sql_shows_its_rows(outputs: dict[str, Outputs]) -> None:
    (shown,) = rows_of(outputs["2"])
    assert "| Oslo  | 66667 | 1599903.0 |" in text([shown])
    assert "Oslo</td>" in "".join(shown["data"]["text/html"])


def test_the_variables_of_the_notebook_are_values(outputs: dict[str, Outputs]) -> None:
    assert rows_of(outputs["4"]) == []  # --to: nothing is shown
    assert text(rows_of(outputs["5"])) == "4122"
    assert text(rows_of(outputs["6"])) == "[{'price': 48.0}]"


def test_a_dataframe_shows_its_rows(outputs: dict[str, Outputs]) -> None:
    (shown,) = rows_of(outputs["7"])
    assert shown["output_type"] == "execute_result"
    assert "| Kyoto | 1374 |" in text([shown])
    assert "Kyoto</td>" in "".join(shown["data"]["text/html"])
    assert "price" in text(rows_of(outputs["printed"]))


def test_a_plan_is_drawn(outputs: dict[str, Outputs]) -> None:
    (shown,) = [each for each in outputs["8"] if "Explanation" in text([each])]
    assert "".join(shown["data"]["text/html"]).startswith("<iframe srcdoc=")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("wrong", "No field named nothing"),
        ("broken", "ivide by zero"),
        ("wrong line", "--to has no value"),
    ],
)
def test_an_error_is_shown_without_the_code_that_it_came_through(
    outputs: dict[str, Outputs], cell: str, said: str
) -> None:
    (error,) = [each for each in outputs[cell] if each["output_type"] == "error"]
    (shown,) = error["traceback"]
    assert said in shown
    assert 'File "' not in shown
    assert ".py" not in shown
    assert ("begins at line 3" in shown) == (cell == "broken")  # the magic is on line 1


def test_progress_is_shown_below_the_cell(outputs: dict[str, Outputs]) -> None:
    said = text(outputs["progress"])
    assert re.search(r"done in \d+\.\d s  stages (\d+)/\1  tasks (\d+)/\2  [\d,]+ rows", said), said
    assert all("<progress" not in "".join(each["data"]["text/html"]) for each in outputs["progress"]), "it has ended"


def test_another_session_can_be_named(outputs: dict[str, Outputs]) -> None:
    assert outputs["other"] == []
    (shown,) = outputs["from other"]  # its progress is off
    assert "| 7 |" in text([shown])


def test_explain_keeps_its_lines(outputs: dict[str, Outputs]) -> None:
    (shown,) = [each for each in rows_of(outputs["explained"]) if each["output_type"] == "display_data"]
    assert "font-family: monospace" in "".join(shown["data"]["text/html"])


def test_the_extension_can_be_unloaded(outputs: dict[str, Outputs]) -> None:
    assert text(outputs["unloaded"]) == "True"


def test_the_kernel_has_ended(outputs: dict[str, Outputs]) -> None:
    assert not psutil.pid_exists(int(text(outputs["process"])))
