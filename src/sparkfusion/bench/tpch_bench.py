"""TPC-H on a user's session: sparkfusion, single-node DataFusion and, on Spark, Spark SQL, over the same files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkfusion.bench.bench_result import OURS, SINGLE_NODE, SPARK_SQL, BenchedQuery, BenchResult
from sparkfusion.bench.in_turn import Ask, compare_answers, take_turns
from sparkfusion.bench.machine_facts import machine_facts
from sparkfusion.bench.referee import Referee
from sparkfusion.bench.tpc import TPCH
from sparkfusion.errors import UserError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.observe.events import Event, QueryPlanned
from sparkfusion.runner.base import SparkAnswers
from sparkfusion.session.engine import Engine
from sparkfusion.session.session import Session, engine_of

_STEPS = {SINGLE_NODE: "single-node DataFusion", SPARK_SQL: "Spark SQL", OURS: "sparkfusion"}


@dataclass(frozen=True)
class BenchOptions:
    """The options of a benchmark.

    Attributes:
        queries: comma-separated numbers; empty for all queries.
        data: a directory that keeps the tables of every scale; without it, they are in a temporary directory.
    """

    scale: float = 1.0
    queries: str = ""
    rounds: int = 2
    data: Path | None = None


class TpchBench:
    """Measures queries over generated tables. `result` has the measurements so far, also if the run is interrupted.

    One thread uses it. `open_bench` makes it.
    """

    def __init__(
        self,
        session: Session,
        tables: Path,
        texts: list[tuple[int, str]],
        options: BenchOptions,
        spark: SparkAnswers | None,
    ) -> None:
        self._session = session
        self._texts = dict(texts)
        self._spark = spark
        self._referee = Referee({name: tables / name for name in TPCH.tables(tables)})
        engines = (SINGLE_NODE, OURS) if spark is None else (SINGLE_NODE, SPARK_SQL, OURS)
        place = engine_of(session).describe_runner() or "in process"
        asked = tuple(number for number, _ in texts)
        self.result = BenchResult(options.scale, options.rounds, place, engines, asked, machine_facts())

    def measure(
        self,
        number: int,
        step: Callable[[str], None] = lambda what: None,
        is_stop: Callable[[BaseException], bool] = lambda error: False,
    ) -> BenchedQuery:
        """Run one query on all engines, compare their answers, and add it to the result.

        Args:
            step: called with a description of the next step.
            is_stop: whether an error means that the user has cancelled. Such an error is raised; others are part of the
                result.
        """
        sql = self._texts[number]
        plans: list[QueryPlanned] = []
        with self._watch(plans):
            found, answers = take_turns(
                self._engines(sql),
                self.result.rounds,
                lambda engine, turn: step(f"q{number}, round {turn} of {self.result.rounds}: {_STEPS[engine]}"),
                is_stop,
            )
        step(f"q{number}: comparing the answers")
        judged = compare_answers(sql, found, answers, self._referee)
        plan = plans[-1] if plans else None
        query = BenchedQuery(number, judged)
        if plan is not None:
            query = BenchedQuery(number, judged, plan.stages, plan.tasks, plan.reason)
        self.result.queries.append(query)
        return query

    def _engines(self, sql: str) -> dict[str, Ask]:
        spark = self._spark
        theirs: dict[str, Ask] = {} if spark is None else {SPARK_SQL: lambda: spark(sql)}
        return {
            SINGLE_NODE: lambda: self._session.sql(sql, dialect="datafusion").to_datafusion().to_arrow_table(),
            **theirs,
            OURS: lambda: self._session.sql(sql, dialect="datafusion").collect(),
        }

    @contextmanager
    def _watch(self, plans: list[QueryPlanned]) -> Iterator[None]:
        """Record how sparkfusion plans its queries."""

        def note(event: Event) -> None:
            if isinstance(event, QueryPlanned):
                plans.append(event)

        unsubscribe = self._session.subscribe(note)
        try:
            yield
        finally:
            unsubscribe()


@contextmanager
def open_bench(session: Session, options: BenchOptions, say: Callable[[str], None] = print) -> Iterator[TpchBench]:
    """Generate the tables, unless they are there. They are registered in the session until the `with` ends; temporary
    ones are removed then. `say` is called before steps that take long."""
    texts = TPCH.choose(options.queries)
    engine = engine_of(session)
    with ExitStack() as stack:
        below = options.data
        if below is None:
            owned = OwnedDirectory("bench", Path(tempfile.gettempdir()))
            stack.callback(owned.close)
            below = owned.path
        tables = TPCH.prepare(options.scale, _make_directory(below, engine), say)
        names = TPCH.tables(tables)
        _check_names(session, names)
        for name in names:
            stack.callback(session.deregister_table, name)
        TPCH.register(session, tables)
        spark = None
        if engine.runs_on_spark:
            urls = {name: (tables / name).as_uri() for name in names}
            spark = stack.enter_context(engine.on_spark("cannot ask Spark SQL").temporary_views(urls))
        yield TpchBench(session, tables, texts, options, spark)


def run_tpch(
    session: Session, *, scale: float = 1.0, queries: str = "", rounds: int = 2, data: str | Path | None = None
) -> BenchResult:
    """Run TPC-H on an open session, such as one on your own Spark session, and print each query when it is measured.

    Args:
        scale: the scale factor. 1 is about 0.3 GB of Parquet files.
        queries: comma-separated numbers, such as "1,3,6"; all 22 if it is empty.
        rounds: how often each query runs on each engine; the best time counts.
        data: a directory that keeps the tables for the next run. Without it, they are in a temporary directory. On a
            cluster, every executor or worker has to reach it under the same path.
    """
    from sparkfusion.bench.bench_report import describe_end, describe_query, describe_start

    options = BenchOptions(scale, queries, rounds, None if data is None else Path(data))
    with open_bench(session, options) as bench:
        print(describe_start(bench.result))
        for number in bench.result.asked:
            print(describe_query(bench.result, bench.measure(number)), flush=True)
        print("\n".join(describe_end(bench.result)))
        return bench.result


def _check_names(session: Session, names: list[str]) -> None:
    taken = [name for name in names if session.table_exist(name)]
    if taken:
        raise UserError(
            f"the TPC-H tables cannot be registered: the session has tables named {', '.join(taken)}",
            hint="use another session",
        )


def _make_directory(directory: Path, engine: Engine) -> Path:
    """Make the directory of the tables, at a path that tasks reach too."""
    directory = directory.absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the TPC-H tables cannot be written to {str(directory)!r}: {error.strerror}",
            hint="give --data (data= in Python) a directory that you may write",
        ) from error
    if not engine.reaches(directory):
        raise UserError(
            f"the TPC-H tables cannot be in {str(directory)!r}: not all executors or workers can use that directory of "
            "this machine",
            hint="give --data (data= in Python) a directory that all of them reach under the same path, such as a "
            "shared file system; workers with --allow-root need it below that",
        )
    return directory
