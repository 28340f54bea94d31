"""Random queries over random tables, some of them fed, give the answers of plain DataFusion over the same rows.

The queries are those of `tests/fuzz`. A third of `--fuzz-cases N` are tried; a failure is shrunk, and printed with its
tables. On Spark they would prove nothing more: what is fed there is in other tests.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

import sparkfusion
from sparkfusion import FileUnit, Session, SparkfusionError
from sparkfusion.verify import CompareOptions
from sparkfusion.verify.judge import Judge
from sparkfusion.worker.task_context import session_config
from tests.fuzz.case import Case
from tests.fuzz.explore import explore
from tests.fuzz.tables import Table
from tests.suites.feeds import Scripted, feed_table, pieces
from tests.suites.terminal import say

FIRST_SEED = 5_000
OURS = "sparkfusion."


@pytest.mark.timeout(0)  # `make fuzz` runs thousands
def test_random_queries_over_feeds(request: pytest.FixtureRequest, fuzz_cases: int) -> None:
    chosen = request.config.getoption("--hypothesis-seed", None)
    count = max(1, fuzz_cases // 3)
    tally: Counter[str] = Counter()

    def check(case: Case) -> None:
        tally[_check(case)] += 1

    failures = explore(FIRST_SEED if chosen is None else int(chosen), count, check)
    if failures:
        pytest.fail("\n\n".join(str(failure) for failure in failures), pytrace=False)
    say(request.config, f"random SQL over feeds: {dict(tally)}")
    assert tally["equal"] >= 0.6 * count, "too few cases had an answer to compare"


def _check(case: Case) -> str:
    """What came of it; raises if the fed answer is not the plain one."""
    settings = dict(case.settings)
    dice = random.Random(case.sql)  # the same feeds whenever the case is run again
    plain = SessionContext(session_config({k: _text(v) for k, v in settings.items() if not k.startswith(OURS)}))
    for table in case.tables:
        plain.register_record_batches(table.name, [table.data.to_batches() or [_no_rows(table.data.schema)]])
    with tempfile.TemporaryDirectory() as directory, sparkfusion.connect(config=settings) as session:
        fed = dice.sample(case.tables, dice.randint(1, len(case.tables)))
        for table in case.tables:
            if table in fed:
                _feed(session, table, dice, Path(directory))
            else:
                session.register_record_batches(table.name, [table.data.to_batches() or [_no_rows(table.data.schema)]])
        return _compare(session, plain, case.sql, {table.name for table in fed})


def _compare(session: Session, plain: SessionContext, sql: str, fed: set[str]) -> str:
    try:
        frame = plain.sql(sql)
        expected = frame.to_arrow_table()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        try:
            session.sql(sql).collect()
        except SparkfusionError:
            return "both fail"
        return "only plain DataFusion fails"  # it may not reach the row that the other one fails on
    try:
        found = session.sql(sql).collect()
    except SparkfusionError as error:
        if "cannot be distributed" in str(error):
            return "refused"
        raise AssertionError(f"fed {sorted(fed)}: {error}\n{sql}") from error
    settings = {name: str(session.config[name]) for name in session.config if not name.startswith(OURS)}
    judge = Judge(expected, frame.logical_plan(), plain, CompareOptions(), lambda: settings)
    verdict = judge.judge(found)
    if verdict.right:
        return "equal"
    if verdict.undecided is not None:
        return "several right answers"
    raise AssertionError(f"fed {sorted(fed)}: {verdict.comparison.describe()}\n{sql}")


def _feed(session: Session, table: Table, dice: random.Random, directory: Path) -> None:
    units, tasks = dice.randint(1, 9), dice.randint(1, 4)
    session.config["sparkfusion.feed_units_ahead"] = dice.choice((1, 3, 1000))
    if dice.random() < 0.5 or table.format not in ("parquet", "arrow"):
        feed_table(session, table.name, table.data, units=units, tasks=tasks)
        return
    folder = directory / f"fed {table.name}"
    folder.mkdir()
    paths = []
    for number, piece in enumerate(pieces(table.data, units)):
        paths.append(folder / f"{number}.{table.format}")
        if table.format == "parquet":
            pq.write_table(piece, paths[-1], row_group_size=table.row_group)
        else:
            with pa.ipc.new_file(str(paths[-1]), piece.schema) as writer:
                writer.write_table(piece.combine_chunks())
    provider = Scripted([FileUnit(str(path)) for path in paths])
    session.register_feed(table.name, provider, schema=table.data.schema, format=table.format, tasks=tasks)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
