"""Text of DataFusion's dialect together with its type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.dialect.refusals import wrong
from sparkfusion.errors import clean_message

_PROBED = "probed"


@dataclass(frozen=True)
class Typed:
    """An expression in DataFusion's dialect.

    Attributes:
        value: the value of a literal; None for anything else, and for NULL.
        constant: whether it is a literal. `TypeProbe` asks DataFusion with the literals themselves.
    """

    sql: str
    type: pa.DataType
    value: object = None
    constant: bool = False


NULL = Typed("null", pa.null(), constant=True)


class TypeProbe:
    """Asks DataFusion for the types of calls of the user's functions, over a table without rows. The types are cached.

    Not safe for several threads at once.
    """

    def __init__(self, context: Callable[[], SessionContext]) -> None:
        """`context` returns a context with the functions of the dialect that nothing else uses."""
        self._make = context
        self._context: SessionContext | None = None
        self._known: dict[tuple[str, tuple[pa.DataType, ...]], pa.DataType] = {}

    def build(self, template: str, *operands: Typed) -> Typed:
        """An expression of operands: `build("upper({0})", text)`."""
        columns = [each if each.constant else Typed(f'"c{n}"', each.type) for n, each in enumerate(operands)]
        asked = template.format(*(each.sql for each in columns))
        key = asked, tuple(each.type for each in columns)
        if key not in self._known:
            self._known[key] = self._ask(asked, columns)
        return Typed(template.format(*(each.sql for each in operands)), self._known[key])

    def _ask(self, sql: str, columns: Sequence[Typed]) -> pa.DataType:
        if self._context is None:
            self._context = self._make()
        fields = [(f"c{n}", each.type) for n, each in enumerate(columns) if not each.constant]
        batch = pa.RecordBatch.from_pylist([], schema=pa.schema([*fields, ("always", pa.int32())]))
        self._context.register_record_batches(_PROBED, [[batch]])
        try:
            return self._context.sql(f"select {sql} from {_PROBED}").schema().field(0).type
        except Exception as error:
            raise wrong(f"DataFusion does not take {sql}: {clean_message(error)}") from error
        finally:
            self._context.deregister_table(_PROBED)


def failing_sql(message: str, to: pa.DataType, cast: Callable[[str, pa.DataType], str]) -> str:
    """An expression that fails when it is computed for a row. Its error quotes the value of the SQL expression
    `message`.

    A plain cast would already fail when DataFusion folds constants, even in a branch that no row takes.
    """
    broken = f"to_timestamp({message})"
    if to == pa.date32() or pa.types.is_timestamp(to):
        return cast(broken, to)
    return cast(f"arrow_cast({broken}, 'Int64')", to)
