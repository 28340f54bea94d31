"""An Iceberg catalog for tests, in memory, with its tables below a directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def iceberg_catalog(directory: Path) -> Iterator[Any]:
    """A catalog with the namespace `n`, until the `with` ends. Then the threads of pyiceberg end too."""
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    made = sql.SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{directory}/ware house")
    made.create_namespace("n")
    try:
        yield made
    finally:
        made.close()
        concurrent = pytest.importorskip("pyiceberg.utils.concurrent")
        concurrent.ExecutorFactory.get_or_create().shutdown()  # its threads are for the life of a process
        concurrent.ExecutorFactory._instance = None
