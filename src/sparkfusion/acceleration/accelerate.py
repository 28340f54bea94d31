"""`sparkfusion.accelerate`: whether sparkfusion answers a query of Spark, how, and how fast."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparkfusion.acceleration.measurement import Measurement, measure_in_turn
from sparkfusion.acceleration.side_by_side import side_by_side
from sparkfusion.errors import UserError
from sparkfusion.extras import import_extra
from sparkfusion.session.catalog_tables import SWITCHED_OFF
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.session import Session, connect, finds_tables_of_spark, spark_of
from sparkfusion.session.table_names import is_unknown_table
from sparkfusion.verify.compare import Comparison, compare_tables
from sparkfusion.verify.declared_order import OrderKey, declared_order

if TYPE_CHECKING:
    import pyspark.sql

    from sparkfusion.runner.spark.users_query import UsersQuery


@dataclass(frozen=True)
class _Answer:
    """A query of sparkfusion that gives Spark's answer; `columns` are the columns of the answer, in Spark's order."""

    query: DataFrame = field(repr=False)  # its repr would run it
    columns: tuple[str, ...]
    how: str


class Acceleration:
    """The result of `accelerate` for a query of Spark. Close it, or use it in a `with`, to close its session.

    `df` may be used after that, if it was asked for before.
    """

    def __init__(self, users: UsersQuery, config: Mapping[str, object] | None) -> None:
        """Called by `sparkfusion.accelerate`."""
        self._users = users
        self._session = connect(users.spark, config=config)
        try:
            self._answer, self._reason = _find_answer(users, self._session)
        except BaseException:
            self._session.close()
            raise

    @property
    def answered(self) -> bool:
        """Whether sparkfusion answers the query."""
        return self._answer is not None

    @property
    def reason(self) -> str | None:
        """Why sparkfusion does not answer the query; None if it does."""
        return self._reason

    @property
    def how(self) -> str:
        """How the query runs, in one line."""
        return self._answer.how if self._answer is not None else f"by Spark, because {self._reason}"

    @cached_property
    def df(self) -> pyspark.sql.DataFrame:
        """The answer as a Spark DataFrame with the schema of Spark's own answer: sparkfusion's, or the user's own
        DataFrame if sparkfusion does not answer the query.

        It is lazy like that of `DataFrame.to_spark`, which lists the queries that run at once.
        """
        dataframe: pyspark.sql.DataFrame = self._make() if self.answered else self._users.dataframe
        return dataframe

    def explain(self, *, width: int | None = None) -> None:
        """Print how Spark and sparkfusion run the query: side by side, or one after the other on a narrow terminal.

        Args:
            width: in characters; by default the width of the terminal.
        """
        print(self.explain_text(width=width))

    def explain_text(self, *, width: int | None = None) -> str:
        """What `explain` prints."""
        theirs = ("Spark", self._users.explain())
        text = f"not accelerated, because {self._reason}"
        if self._answer is not None:
            text = self._answer.query.explain_text()
        return side_by_side(theirs, ("sparkfusion", text), width or shutil.get_terminal_size().columns)

    def measure(self, *, rounds: int = 2) -> Measurement:
        """Run the whole query in Spark and here, in turn, and compare the times.

        Both compute all rows and give them to Spark, which discards them. The times include planning. The first round
        of a new Spark session takes longer; the best round counts.
        """
        if rounds < 1:
            raise UserError(f"cannot measure {rounds} rounds", hint="rounds must be at least 1")
        self._expect_answer("measure")
        from sparkfusion.runner.spark.users_query import run_fully

        return measure_in_turn(lambda: run_fully(self._users.dataframe), lambda: run_fully(self._make()), rounds)

    def compare(self) -> Comparison:
        """Run the query in Spark and here, and compare schemas and rows, in this process. Both answers must fit into
        its memory. The order of the rows is checked as far as the query declares it. If several answers are right, as
        with a LIMIT without ORDER BY, right answers may be different."""
        answer = self._expect_answer("compare")
        theirs, ours = self._users.dataframe.toArrow(), self._make().toArrow()
        order: Sequence[OrderKey] = ()
        if list(answer.columns) == answer.query.schema().names:
            declared = declared_order(answer.query.logical_plan(), theirs.rename_columns(answer.columns))
            order = [key for key in declared.keys if key.column is not None]
        return compare_tables(theirs, ours, order=order)

    def close(self) -> None:
        """Close the session of sparkfusion that belongs to it. May be called several times."""
        self._session.close()

    def __enter__(self) -> Acceleration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Acceleration({self.how})"

    def _make(self) -> Any:
        answer = self._expect_answer("run")
        return self._users.shape(answer.query.to_spark(), answer.columns)

    def _expect_answer(self, what: str) -> _Answer:
        if self._answer is None:
            raise UserError(f"cannot {what} the query here: it is not accelerated, because {self._reason}")
        return self._answer


def accelerate(
    query: str | pyspark.sql.DataFrame, *, spark: Any = None, config: Mapping[str, object] | None = None
) -> Acceleration:
    """Find out whether sparkfusion answers a query of Spark, and how. The query does not run yet.

    It is answered only if the answer is Spark's: the same schema and the same rows. Otherwise `reason` says why not.

    Args:
        query: a Spark DataFrame, or SQL text in Spark's dialect. Spark Connect does not show plans; with it, a
            DataFrame has to come from `spark.sql`.
        spark: the Spark session for a text; by default the active one.
        config: settings of sparkfusion by their full names.
    """
    import_extra("pyspark", "spark", "accelerate")
    from sparkfusion.runner.spark.users_query import UsersQuery

    return Acceleration(UsersQuery.of(query, spark), config)


def _find_answer(users: UsersQuery, session: Session) -> tuple[_Answer | None, str | None]:
    """The query that gives the answer of the user's query, or the reason why there is none."""
    from sparkfusion.runner.spark.users_query import NotTranslatedError

    try:
        users.check()
        if users.text is not None:
            query = session.sql(users.text, dialect="spark")
            columns = tuple(query.schema().names)
        else:
            translated = users.translate()
            with spark_of(session).catalog.name_dataframes(translated.leaves):
                query = session.sql(translated.text, dialect="spark")
            columns = translated.columns
        users.check_schema(_schema(query, columns))
        how = query.explain_text().splitlines()[0]
    except NotTranslatedError as error:
        return None, str(error)
    except UserError as error:
        off = is_unknown_table(error.message) and not finds_tables_of_spark(session)
        return None, SWITCHED_OFF if off else error.message
    return _Answer(query, columns, how), None


def _schema(query: DataFrame, columns: Sequence[str]) -> pa.Schema:
    """The schema of an answer, with unique names in place of Spark's, which may occur twice."""
    made = query.schema()
    if len(set(made.names)) < len(made.names):
        raise UserError("two columns of its result have the same name, and sparkfusion cannot return that")
    return pa.schema([made.field(name).with_name(f"c{place}") for place, name in enumerate(columns)])
