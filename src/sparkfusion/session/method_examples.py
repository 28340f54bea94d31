"""One example for each method of a session that is made of DataFusion's. The tests run them.

They use a session with a table `orders`, and files of the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, str] = {
    "register_parquet": """
        >>> session.register_parquet("files", "orders.parquet")
        >>> session.table("files").count()
        3
        """,
    "register_csv": """
        >>> session.register_csv("files", "orders.csv", on_error="skip")
        >>> session.table("files").count()
        3
        """,
    "register_json": """
        >>> session.register_json("files", "orders.json")
        >>> session.table("files").sort("id").to_pydict()["city"]
        ['Oslo', 'Lima']
        """,
    "register_arrow": """
        >>> session.register_arrow("files", "orders.arrow")
        >>> session.table("files").count()
        3
        """,
    "register_listing_table": """
        >>> session.register_listing_table("files", "orders.parquet", file_extension=".parquet")
        >>> session.table("files").count()
        3
        """,
    "register_record_batches": """
        >>> session.register_record_batches("rows", [[pa.record_batch({"n": [1]})], [pa.record_batch({"n": [2]})]])
        >>> session.table("rows").sort("n").to_pydict()
        {'n': [1, 2]}
        """,
    "register_batch": """
        >>> session.register_batch("rows", pa.record_batch({"n": [1, 2]}))
        >>> session.table("rows").sort("n").to_pydict()
        {'n': [1, 2]}
        """,
    "register_view": """
        >>> session.register_view("dear", orders.filter("price > 15"))
        >>> session.sql("select count(*) as n from dear").to_pydict()
        {'n': [2]}
        """,
    "register_table": """
        >>> session.register_table("again", session.catalog().schema().table("orders"))
        >>> session.table("again").count()
        3
        """,
    "register_dataset": """
        >>> import pyarrow.dataset
        >>> session.register_dataset("files", pa.dataset.dataset("orders.parquet"))
        >>> session.table("files").count()
        3
        """,
    "read_parquet": """
        >>> session.read_parquet("orders.parquet").count()
        3
        """,
    "read_csv": """
        >>> session.read_csv("orders.csv").filter("city = 'Lima'").to_pylist()
        [{'id': 2, 'city': 'Lima', 'price': 20}]
        """,
    "read_json": """
        >>> session.read_json("orders.json").count()
        2
        """,
    "read_arrow": """
        >>> session.read_arrow("orders.arrow").count()
        3
        """,
    "from_arrow": """
        >>> session.from_arrow(pa.table({"n": [1, 2]})).count()
        2
        """,
    "from_pandas": """
        >>> import pandas
        >>> session.from_pandas(pandas.DataFrame({"n": [1, 2]})).count()
        2
        """,
    "from_polars": """
        >>> import polars
        >>> session.from_polars(polars.DataFrame({"n": [1, 2]})).count()
        2
        """,
    "from_pydict": """
        >>> session.from_pydict({"n": [1, 2]}, name="numbers").count()
        2
        >>> session.sql("select sum(n) as n from numbers").to_pydict()
        {'n': [3]}
        """,
    "from_pylist": """
        >>> session.from_pylist([{"n": 1}, {"n": 2}]).count()
        2
        """,
    "create_dataframe": """
        >>> session.create_dataframe([[pa.record_batch({"n": [1, 2]})]]).count()
        2
        """,
    "deregister_table": """
        >>> session.deregister_table("orders")
        >>> session.table_exist("orders")
        False
        """,
    "table_exist": """
        >>> session.table_exist("orders")
        True
        """,
    "register_udaf": """
        >>> from datafusion import Accumulator
        >>> from sparkfusion import udaf
        >>> class Longest(Accumulator):
        ...     length = 0
        ...     def update(self, values):
        ...         self.length = max(self.length, *(len(value.as_py()) for value in values))
        ...     def merge(self, states):
        ...         self.length = max(self.length, *(value.as_py() for value in states[0]))
        ...     def state(self):
        ...         return [pa.scalar(self.length)]
        ...     def evaluate(self):
        ...         return pa.scalar(self.length)
        >>> session.register_udaf(udaf(Longest, pa.string(), pa.int64(), [pa.int64()], "stable", "longest"))
        >>> session.sql("select longest(city) as n from orders").to_pydict()
        {'n': [4]}
        """,
    "register_udwf": """
        >>> from datafusion.user_defined import WindowEvaluator
        >>> from sparkfusion import udwf
        >>> class Backwards(WindowEvaluator):
        ...     def evaluate_all(self, values, num_rows):
        ...         return pa.array(range(num_rows, 0, -1))
        >>> session.register_udwf(udwf(Backwards, pa.int64(), pa.int64(), "stable", "backwards"))
        >>> session.sql("select id, backwards(id) over (order by id) as n from orders order by id").to_pydict()["n"]
        [3, 2, 1]
        """,
    "enable_spark_functions": """
        >>> session.enable_spark_functions()
        >>> session.sql("select soundex('Oslo') as code").to_pydict()
        {'code': ['O240']}
        """,
    "deregister_udf": """
        >>> session.deregister_udf("abs")
        >>> "abs" in session.udfs()
        False
        """,
    "deregister_udaf": """
        >>> session.deregister_udaf("stddev_pop")
        >>> "stddev_pop" in session.udafs()
        False
        """,
    "deregister_udwf": """
        >>> session.deregister_udwf("ntile")
        >>> "ntile" in session.udwfs()
        False
        """,
    "catalog_names": """
        >>> sorted(session.catalog_names())
        ['datafusion']
        """,
    "session_id": """
        >>> len(session.session_id())
        36
        """,
    "session_start_time": """
        >>> session.session_start_time()[:2]
        '20'
        """,
    "enable_ident_normalization": """
        >>> session.enable_ident_normalization()
        True
        """,
    "udf": """
        >>> orders.select(session.udf("upper")(col("city")).alias("city")).to_pylist()[0]
        {'city': 'OSLO'}
        """,
    "udfs": """
        >>> "upper" in session.udfs()
        True
        """,
    "udaf": """
        >>> orders.aggregate([], [session.udaf("max")(col("price")).alias("most")]).to_pydict()
        {'most': [30.0]}
        """,
    "udafs": """
        >>> "sum" in session.udafs()
        True
        """,
    "udwf": """
        >>> orders.select("id", session.udwf("row_number")().alias("n")).to_pydict()["n"]
        [1, 2, 3]
        """,
    "udwfs": """
        >>> "row_number" in session.udwfs()
        True
        """,
}
