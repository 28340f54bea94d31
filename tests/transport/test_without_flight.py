"""Without `pyarrow.flight` everything else works."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in ("pyarrow.flight", "pyarrow._flight"):
            raise ImportError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
import sparkfusion
with sparkfusion.connect(config={"sparkfusion.bytes_per_partition": 1}) as session:
    session.from_pydict({"x": [1, 2, 3]})
    assert session.sql("select sum(x) as s from (values (1), (2)) as t(x)").to_pylist() == [{"s": 3}]
import sparkfusion.cli.app
try:
    sparkfusion.connect("flight://127.0.0.1:1?token=x")
except sparkfusion.UserError as error:
    print(error)
"""


def test_only_flight_needs_flight() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "flight:// needs pyarrow" in ended.stdout


def test_nothing_imports_it_unasked() -> None:
    script = "import sys, sparkfusion, sparkfusion.cli.app; sys.exit('pyarrow.flight' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
