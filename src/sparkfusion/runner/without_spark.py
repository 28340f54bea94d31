"""What runners say to questions that only one on Spark can answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.ids import TableId
from sparkfusion.runner.base import HostTable, QueryJob


class WithoutSpark:
    """Part of a runner whose tasks are not Spark's."""

    def adopt(self, source: object) -> HostTable:
        raise _not_on_spark(f"cannot register a {type(source).__qualname__}")

    def release(self, table: TableId) -> None:
        del table  # none was adopted

    def to_spark(self, job: QueryJob, schema: pa.Schema) -> Any:
        del job, schema
        raise _not_on_spark("cannot make a Spark DataFrame")

    def from_rows(self, rows: pa.Table) -> Any:
        del rows
        raise _not_on_spark("cannot make a Spark DataFrame")


def _not_on_spark(what: str) -> UserError:
    return UserError(f"{what}: this session does not run on Spark", hint="use sparkfusion.connect(spark)")
