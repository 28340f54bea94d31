"""The verbs of a DataFrame: each returns another DataFrame, and nothing runs. DataFusion does the work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import datafusion
import pyarrow as pa
from datafusion import Expr
from datafusion.expr import SortKey

from sparkfusion.session.chains import check_chains
from sparkfusion.session.dataframe_core import DataFrameCore
from sparkfusion.session.datafusion_calls import call_datafusion, unwrap

JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]


class DataFrameVerbs(DataFrameCore):
    """Methods of `sparkfusion.DataFrame` with the names, arguments and meaning of datafusion-python's.

    A text is a column's name, or SQL of an expression where the method says so. The examples use a small table of
    `orders` with the columns `id`, `city` and `price`.
    """

    def _apply(self, name: str, *args: Any, **kwargs: Any) -> Self:
        """Call DataFusion's method of that name."""
        for text in (value for value in args if isinstance(value, str)):
            check_chains(text)
        named = {key: unwrap(value) for key, value in kwargs.items()}
        method = getattr(self._query.inner, name)
        made = call_datafusion(method, *map(unwrap, args), **named)
        # datafusion-python does not wrap what its select_exprs gives
        return self._with(made if isinstance(made, datafusion.DataFrame) else datafusion.DataFrame(made))

    # ---- columns

    def select(self, *exprs: Expr | str) -> Self:
        """These columns: names, or expressions.

        >>> orders.select("id", (col("price") * 2).alias("double")).to_pylist()[0]
        {'id': 1, 'double': 20.0}
        """
        return self._apply("select", *exprs)

    def select_exprs(self, *args: str) -> Self:
        """These columns, each as SQL.

        >>> orders.select_exprs("id", "price * 2 as double").to_pylist()[0]
        {'id': 1, 'double': 20.0}
        """
        return self._apply("select_exprs", *args)

    def with_column(self, name: str, expr: Expr | str) -> Self:
        """All columns, and one more: an expression, or SQL. A column of that name is replaced.

        >>> orders.with_column("double", "price * 2").to_pylist()[0]
        {'id': 1, 'city': 'Oslo', 'price': 10.0, 'double': 20.0}
        """
        return self._apply("with_column", name, expr)

    def with_columns(self, *exprs: Expr | str | Iterable[Expr | str], **named_exprs: Expr | str) -> Self:
        """All columns, and these: expressions or SQL that name themselves, or arguments by name.

        >>> orders.with_columns(double=col("price") * 2, half="price / 2").select("double", "half").to_pylist()[0]
        {'double': 20.0, 'half': 5.0}
        """
        return self._apply("with_columns", *exprs, **named_exprs)

    def with_column_renamed(self, old_name: str, new_name: str) -> Self:
        """All columns, one under another name. Nothing changes if there is no such column.

        >>> orders.with_column_renamed("city", "town").schema().names
        ['id', 'town', 'price']
        """
        return self._apply("with_column_renamed", old_name, new_name)

    def drop(self, *columns: str) -> Self:
        """All columns but these. A name that is not in lower case needs double quotes.

        >>> orders.drop("city").schema().names
        ['id', 'price']
        """
        return self._apply("drop", *columns)

    def cast(self, mapping: dict[str, pa.DataType]) -> Self:
        """All columns, these with another type.

        >>> orders.cast({"price": pa.int32()}).schema().field("price").type
        DataType(int32)
        """
        return self._apply("cast", mapping)

    def alias(self, alias: str) -> Self:
        """The same rows under a table name, to tell two sides of a join apart.

        >>> both = orders.alias("a").join_on(orders.alias("b"), col("a.id") < col("b.id"))
        >>> both.select(col("a.id"), col("b.id").alias("other")).sort("id", "other").to_pylist()
        [{'id': 1, 'other': 2}, {'id': 1, 'other': 3}, {'id': 2, 'other': 3}]
        """
        return self._apply("alias", alias)

    def unnest_columns(
        self, *columns: str, preserve_nulls: bool = True, recursions: list[tuple[str, str, int]] | None = None
    ) -> Self:
        """A row for each element of these columns' lists.

        >>> session.from_pydict({"n": [[1, 2], [3]]}).unnest_columns("n").to_pydict()
        {'n': [1, 2, 3]}
        """
        return self._apply("unnest_columns", *columns, preserve_nulls=preserve_nulls, recursions=recursions)

    def fill_null(self, value: Any, subset: list[str] | None = None) -> Self:
        """NULLs replaced, in all columns whose type the value fits, or in these.

        >>> session.from_pydict({"n": [1, None]}).fill_null(0).to_pydict()
        {'n': [1, 0]}
        """
        return self._apply("fill_null", value, subset)

    def fill_nan(self, value: float, subset: list[str] | None = None) -> Self:
        """NaNs of floating-point columns replaced.

        >>> session.from_pydict({"n": [1.0, float("nan")]}).fill_nan(0.0).to_pydict()
        {'n': [1.0, 0.0]}
        """
        return self._apply("fill_nan", value, subset)

    def window(self, *exprs: Expr) -> Self:
        """All columns, and these window functions.

        >>> rank = f.row_number(order_by=[col("price").sort(ascending=False)]).alias("rank")
        >>> orders.window(rank).sort("id").to_pydict()["rank"]
        [3, 2, 1]
        """
        return self._apply("window", *exprs)

    # ---- rows

    def filter(self, *predicates: Expr | str) -> Self:
        """The rows for which all predicates are true: expressions, or SQL.

        >>> orders.filter(col("price") > 15, "city = 'Oslo'").to_pylist()
        [{'id': 3, 'city': 'Oslo', 'price': 30.0}]
        """
        return self._apply("filter", *predicates)

    def limit(self, count: int, offset: int = 0) -> Self:
        """Some rows. Which ones is certain only after a sort.

        >>> orders.sort("id").limit(1, offset=1).to_pydict()["id"]
        [2]
        """
        return self._apply("limit", count, offset)

    def head(self, n: int = 5) -> Self:
        """The first rows.

        >>> orders.sort("id").head(2).to_pydict()["id"]
        [1, 2]
        """
        return self._apply("head", n)

    def distinct(self) -> Self:
        """Each row once.

        >>> orders.select("city").distinct().sort("city").to_pydict()
        {'city': ['Lima', 'Oslo']}
        """
        return self._apply("distinct")

    def distinct_on(self, on_expr: list[Expr], select_expr: list[Expr], sort_expr: list[SortKey] | None = None) -> Self:
        """The first row for each value of `on_expr`, in the order of `sort_expr`, which begins with `on_expr`.

        >>> dearest = [col("city").sort(), col("price").sort(ascending=False)]
        >>> orders.distinct_on([col("city")], [col("city"), col("price")], dearest).sort("city").to_pylist()
        [{'city': 'Lima', 'price': 20.0}, {'city': 'Oslo', 'price': 30.0}]
        """
        return self._apply("distinct_on", on_expr, select_expr, sort_expr)

    def sort(self, *exprs: SortKey) -> Self:
        """The rows in this order: by names, expressions, or `col("x").sort(ascending=False)`.

        >>> orders.sort(col("price").sort(ascending=False)).to_pydict()["id"]
        [3, 2, 1]
        """
        return self._apply("sort", *exprs)

    def sort_by(self, *exprs: Expr | str) -> Self:
        """The rows in ascending order of these, NULLs last.

        >>> orders.sort_by("city", col("id")).to_pydict()["id"]
        [2, 1, 3]
        """
        return self._apply("sort_by", *exprs)

    def repartition(self, num: int) -> Self:
        """The same rows. DataFusion deals them out to so many partitions; a distributed plan has its own.

        >>> orders.repartition(2).count()
        3
        """
        return self._apply("repartition", num)

    def repartition_by_hash(self, *exprs: Expr | str, num: int) -> Self:
        """The same rows, in so many partitions by a hash of expressions or SQL.

        >>> orders.repartition_by_hash("city", num=2).count()
        3
        """
        return self._apply("repartition_by_hash", *exprs, num=num)

    # ---- aggregates

    def aggregate(self, group_by: Sequence[Expr | str] | Expr | str | None, aggs: Sequence[Expr] | Expr) -> Self:
        """One row for each group: its keys, and aggregates of its rows. No keys: one row.

        >>> orders.aggregate("city", [f.sum(col("price")).alias("total")]).sort("city").to_pylist()
        [{'city': 'Lima', 'total': 20.0}, {'city': 'Oslo', 'total': 40.0}]
        """
        return self._apply("aggregate", group_by, aggs)

    def describe(self) -> Self:
        """Count, mean, deviation, least and greatest value and median of each column. DataFusion computes them now, on
        a single node.

        >>> orders.describe().filter("describe = 'max'").select("id", "price").to_pylist()
        [{'id': 3.0, 'price': 30.0}]
        """
        with self._engine.name_damaged_file(self._query.inner):
            return self._apply("describe")

    # ---- several DataFrames

    def join(
        self,
        right: Self,
        on: str | Sequence[str] | tuple[list[str], list[str]] | None = None,
        how: JoinType = "inner",
        *,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        join_keys: tuple[list[str], list[str]] | None = None,
        coalesce_duplicate_keys: bool = True,
    ) -> Self:
        """Join by columns of equal value: `on`, or `left_on` and `right_on` if they have different names.

        >>> cities = session.from_pydict({"city": ["Oslo"], "country": ["Norway"]})
        >>> orders.join(cities, on="city", how="left").sort("id").to_pydict()["country"]
        ['Norway', None, 'Norway']
        """
        return self._apply(
            "join",
            right,
            on,
            how,
            left_on=left_on,
            right_on=right_on,
            join_keys=join_keys,
            coalesce_duplicate_keys=coalesce_duplicate_keys,
        )

    def join_on(self, right: Self, *on_exprs: Expr, how: JoinType = "inner") -> Self:
        """Join by expressions, which may be about more than equality.

        >>> limits = session.from_pydict({"least": [15.0]})
        >>> orders.join_on(limits, col("price") >= col("least")).sort("id").to_pydict()["id"]
        [2, 3]
        """
        return self._apply("join_on", right, *on_exprs, how=how)

    def union(self, other: Self, distinct: bool = False) -> Self:
        """The rows of both; columns are matched by position. `distinct`: each row once.

        >>> orders.union(orders).count(), orders.union(orders, distinct=True).count()
        (6, 3)
        """
        return self._apply("union", other, distinct)

    def union_by_name(self, other: Self, distinct: bool = False) -> Self:
        """The rows of both; columns are matched by name.

        >>> orders.select("id", "price").union_by_name(orders.select("price", "id")).count()
        6
        """
        return self._apply("union_by_name", other, distinct)

    def union_distinct(self, other: Self) -> Self:
        """Deprecated, as in DataFusion: `union(other, distinct=True)`."""
        return self._apply("union_distinct", other)

    def intersect(self, other: Self, distinct: bool = False) -> Self:
        """The rows that are in both.

        >>> orders.intersect(orders.filter("price > 15")).sort("id").to_pydict()["id"]
        [2, 3]
        """
        return self._apply("intersect", other, distinct)

    def except_all(self, other: Self, distinct: bool = False) -> Self:
        """The rows that are not in the other DataFrame.

        >>> orders.except_all(orders.filter("price > 15")).to_pydict()["id"]
        [1]
        """
        return self._apply("except_all", other, distinct)
