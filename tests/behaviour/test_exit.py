"""Short programs end as they should: native threads have left Python before the interpreter goes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sparkfusion
session = sparkfusion.connect()
print(session.sql("select 1 as one").to_pylist())
"""
RUNS = 12


def test_short_programs_do_not_crash_at_exit() -> None:
    """Without the wait at exit, about one in five did, on a busy machine."""
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(RUNS)
    ]
    ended = [(process.communicate(timeout=100), process.returncode) for process in running]
    assert [(out, code) for (out, _), code in ended] == [("[{'one': 1}]\n", 0)] * RUNS, [err for (_, err), _ in ended]


WITH_FUNCTION = """
import sys, time
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
import sparkfusion
from datafusion import udf

place = Path(sys.argv[1])
for part in range(2):
    pq.write_table(pa.table({"x": range(100_000)}), place / f"{part}.parquet")

def slow(values, called=str(place / "called")):
    open(called, "a").close()
    time.sleep(0.02)
    return values

settings = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.batch_size": 100}
session = sparkfusion.connect(config=settings)
session.register_parquet("t", str(place))
session.register_udf(udf(slow, [pa.int64()], pa.int64(), "immutable", "slow"))
query = session.sql("select sum(slow(x)) from t").stream()
while not (place / "called").exists():
    time.sleep(0.01)
if sys.argv[2] == "cancelled":
    query.close()
print("leaves")
"""


@pytest.mark.parametrize("how", ["cancelled", "running"])
def test_a_program_may_end_while_a_function_of_a_query_runs(tmp_path: Path, how: str) -> None:
    """Without a word to the function, DataFusion goes on calling it while the interpreter goes, and that aborts."""
    ended = subprocess.run(
        [sys.executable, "-c", WITH_FUNCTION, str(tmp_path), how],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "leaves\n", "")
