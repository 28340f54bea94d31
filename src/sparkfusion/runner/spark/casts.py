"""Convert values of an answer to types that Spark accepts: with Arrow's kernels, and recursively for nested types."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sparkfusion.errors import InternalError, UserError
from sparkfusion.runner.spark.spark_types import is_listlike, spark_arrow_schema

_TIME = pa.time64("ns")


def for_spark(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The batch in the schema that `types.spark_arrow_schema` gave. Called in a worker for each batch of an answer.

    A value that does not fit is a `UserError`. With one exception no value changes: nanoseconds are cut to the
    microseconds that Spark has, towards the past, as Spark itself does with them. DataFusion's `now()`,
    `to_timestamp` and `current_time` are in nanoseconds, so that an error would come and go with the clock.

    Spark trusts a schema that excludes nulls and fails in obscure ways on one; here it is an `InternalError`.

    >>> batch = pa.RecordBatch.from_pydict({"at": pa.array([-1, 1001], pa.timestamp("ns"))})
    >>> for_spark(batch, pa.schema([("at", pa.timestamp("us"))]))["at"].cast(pa.int64()).to_pylist()
    [-1, 1]
    """
    if batch.num_columns != len(target):
        raise InternalError(f"a batch has {batch.num_columns} columns, the answer has {len(target)}")
    if not batch.num_columns:
        return batch  # a new one would not know how many rows there are
    columns = [_column(array, field) for array, field in zip(batch.columns, target, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def table_for_spark(rows: pa.Table) -> pa.Table:
    """All rows of an answer, in types that Spark accepts."""
    target = spark_arrow_schema(rows.schema)
    return pa.Table.from_batches([for_spark(batch, target) for batch in rows.to_batches()], target)


def _column(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return _no_nulls_excluded(_cast(array, field.type), field)
    except pa.ArrowException as error:
        message = f"column {field.name!r} of the result has a value that does not fit Spark's types: {error}"
        raise UserError(message, hint="cast the column in the query") from error


def _no_nulls_excluded(array: pa.Array, field: pa.Field, parent: pa.Array | None = None) -> pa.Array:
    """The array, if its nulls are allowed. Nulls below a null of the parent do not count: nothing reads them."""
    if not field.nullable and array.null_count:
        hidden = parent.is_null() if parent is not None else pa.scalar(False)
        if pc.any(pc.and_not(array.is_null(), hidden)).as_py():
            raise InternalError(f"{field.name!r} of the result has a null, which the answer's schema excludes")
    return array


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    kind = array.type
    if kind.equals(target, check_metadata=True) and _takes_any_value(kind):  # "metadata" is also the names in a map
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return _cast(array.storage, target)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, _cast(array.dictionary, target)).dictionary_decode()
    if pa.types.is_run_end_encoded(kind):
        return _cast(pc.run_end_decode(array), target)
    if pa.types.is_map(kind):
        return _map(array, target)
    if is_listlike(kind):
        offsets, values = _parts(array)
        values = _no_nulls_excluded(_cast(values, target.value_type), target.value_field)
        return pa.ListArray.from_arrays(offsets, values, type=target, mask=_mask(array))
    if pa.types.is_struct(kind):
        return _struct(array, target)
    if kind == _TIME:
        return array.cast(pa.time64("us"), safe=False).cast(target)
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        return _floor_to_microseconds(array).view(target)
    return array.cast(target)


def _struct(array: pa.Array, target: pa.DataType) -> pa.Array:
    children = [
        _no_nulls_excluded(_cast(array.field(index), field.type), field, array) for index, field in enumerate(target)
    ]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(array))


def _map(array: pa.Array, target: pa.DataType) -> pa.Array:
    entries = pa.struct([array.type.key_field, array.type.item_field])
    offsets, values = _parts(array.cast(pa.list_(entries)))
    values = _cast(values, pa.struct([target.key_field, target.item_field]))
    return pa.MapArray.from_arrays(offsets, values.field(0), values.field(1), type=target, mask=_mask(array))


def _parts(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Offsets from zero and the values between them, for any kind of list.

    Arrow's own cast to a list is not used: for a sliced list view, pyarrow 26 gives wrong offsets
    (docs/upstream-defects.md#other-packages).
    """
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), ends]), array.flatten()


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _floor_to_microseconds(array: pa.Array) -> pa.Array:
    """Round down to microseconds. Arrow's `floor_temporal` is no faster, needs to know the zone, and overflows at the
    earliest instant."""
    nanoseconds = array.view(pa.int64())
    towards_zero = pc.divide(nanoseconds, 1000)
    too_late = pc.greater(pc.multiply(towards_zero, 1000), nanoseconds)
    return pc.subtract(towards_zero, too_late.cast(pa.int64()))


def _takes_any_value(kind: pa.DataType) -> bool:
    """Not where the schema excludes a null, nor a time: Spark has them in nanoseconds but holds microseconds."""
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return bool(kind != _TIME) and all(field.nullable and _takes_any_value(field.type) for field in fields)
