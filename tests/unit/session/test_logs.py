"""A program that logs at DEBUG sees its own lines, not DataFusion's."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import collections, logging
lines = collections.Counter()
class Counting(logging.Handler):
    def emit(self, record):
        lines[record.name.split(".")[0]] += 1
logging.getLogger().setLevel(logging.DEBUG)
logging.getLogger().addHandler(Counting())
{before}
import sparkfusion
with sparkfusion.connect() as session:
    session.sql("select k, count(*) from (values (1), (2)) t(k) group by k order by k").collect()
print(sum(n for name, n in lines.items() if name.startswith(("datafusion", "sqlparser"))))
"""


def lines_of_datafusion(before: str = "") -> int:
    program = PROGRAM.format(before=before)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    return int(ended.stdout)


def test_debug_of_the_root_logger_is_not_datafusions() -> None:
    assert lines_of_datafusion() == 0


def test_who_asks_for_datafusions_log_gets_it() -> None:
    assert lines_of_datafusion('logging.getLogger("datafusion").setLevel(logging.DEBUG)') > 0
