"""Engines that run in one process, without tasks: DataFusion, DuckDB, Polars. With their defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.all.backends.base import Ask, Reply, Tables


@contextmanager
def open_datafusion(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    from datafusion import SessionContext

    context = SessionContext()
    for name, directory in tables.items():
        context.register_parquet(name, str(directory))
    yield {"datafusion": lambda sql: Reply(context.sql(sql).to_arrow_table())}


@contextmanager
def open_duckdb(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    import duckdb

    # NULL sorts as the largest value, as in DataFusion. It decides which rows a LIMIT keeps.
    with duckdb.connect(
        config={"default_null_order": "postgres", "temp_directory": str(home / "spilled")}
    ) as connection:
        for name, directory in tables.items():
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{directory}/*.parquet')")
        yield {"duckdb": lambda sql: Reply(connection.execute(sql).to_arrow_table())}


@contextmanager
def open_polars(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    import polars

    frames = {name: polars.scan_parquet(directory / "*.parquet") for name, directory in tables.items()}
    with polars.SQLContext(frames) as context:
        yield {"polars": lambda sql: Reply(context.execute(sql, eager=False).collect(engine="streaming").to_arrow())}
