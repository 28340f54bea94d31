"""What the examples in docstrings of sessions and DataFrames begin with: a session, a table, and files of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ORDERS: dict[str, list[Any]] = {"id": [1, 2, 3], "city": ["Oslo", "Lima", "Oslo"], "price": [10.0, 20.0, 30.0]}
_SHOWN_TO = ("sparkfusion.session.", "sparkfusion.observe.past_queries", "sparkfusion.acceleration.")


@pytest.fixture(autouse=True)
def names_of_examples(
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """`session`, `orders` (also a table), `col`, `lit`, `f` and `pa`; orders.parquet, .csv, .json and .arrow in the
    working directory. Each example has its own."""
    if not request.node.name.startswith(_SHOWN_TO):
        yield
        return
    import pyarrow as pa

    import sparkfusion
    from sparkfusion import col, functions, lit

    monkeypatch.chdir(tmp_path)
    write_files(pa.table(ORDERS), tmp_path)
    with sparkfusion.connect() as session:
        session.from_pydict(ORDERS, name="orders")
        names = {
            "session": session,
            "orders": session.table("orders"),
            "col": col,
            "lit": lit,
            "f": functions,
            "pa": pa,
        }
        doctest_namespace.update(names)
        yield
        doctest_namespace.clear()


def write_files(rows: Any, home: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    pa.parquet.write_table(rows, home / "orders.parquet")
    pa.csv.write_csv(rows, home / "orders.csv")
    with pa.ipc.new_file(home / "orders.arrow", rows.schema) as file:
        file.write_table(rows)
    (home / "orders.json").write_text('{"id": 1, "city": "Oslo"}\n{"id": 2, "city": "Lima"}\n')
