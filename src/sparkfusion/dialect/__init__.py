"""Spark's SQL: parsed by sqlglot, and written as SQL of DataFusion with the meaning that it has in Spark 4.

What the types of a query decide, such as whether `/` divides integers, is decided here, before DataFusion sees the
text (docs/adr/0029-spark-sql-is-written-with-types.md). What has no counterpart is refused by name.
"""
