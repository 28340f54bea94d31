"""Writing a query's rows to files: a COPY over the query, planned and distributed like any other."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkfusion.session.frame import DataFrame
    from sparkfusion.session.session import Session


@dataclass(frozen=True)
class WriteTarget:
    format: str
    path: str | PathLike[str]
    options: Mapping[str, str]
    partition_by: tuple[str, ...] = ()


def write(session: Session, frame: DataFrame, target: WriteTarget) -> int:
    """Write all rows and return how many there were. The sink runs in the head stage, over the last exchange."""
    view = f"sparkfusion_write_{uuid.uuid4().hex}"
    session.context.register_view(view, frame.to_datafusion())
    try:
        copied = session.sql(copy_statement(view, target)).collect()
    finally:
        session.context.deregister_table(view)
    return int(copied.column(0)[0].as_py())


def copy_statement(view: str, target: WriteTarget) -> str:
    """The COPY for a target.

    >>> copy_statement("v", WriteTarget("CSV", "/x/it's", {"format.has_header": "true"}, ("k",)))
    'COPY v TO \\'/x/it\\'\\'s\\' STORED AS CSV PARTITIONED BY ("k") OPTIONS (\\'format.has_header\\' \\'true\\')'
    """
    text = f"COPY {view} TO {_quoted(os.fspath(target.path))} STORED AS {target.format}"
    if target.partition_by:
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in target.partition_by)
        text += f" PARTITIONED BY ({columns})"
    if target.options:
        options = ", ".join(f"{_quoted(name)} {_quoted(value)}" for name, value in target.options.items())
        text += f" OPTIONS ({options})"
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
