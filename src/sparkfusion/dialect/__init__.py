"""Spark's SQL: sqlglot parses it, and this package writes it as DataFusion's SQL with the meaning that it has in Spark
4.

Decisions that depend on types, such as whether `/` divides integers, are made here, before DataFusion sees the text
(docs/adr/0029-spark-sql-is-written-with-types.md). A construct without an equivalent in DataFusion is refused by name.
"""
