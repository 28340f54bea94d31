"""Encode columns as group keys, so that columns of every Arrow type can be compared with Arrow's kernels.

Both answers are concatenated and encoded together, so that equal values get equal keys. Each column has two keys:
`full` is equal only for bit-equal values, and `shape` is equal for values that differ only in finite floats. The floats
themselves are kept in addition.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparkfusion.verify.compare_options import CompareOptions

Floats = tuple[float, ...]
Cell = tuple[Hashable, Floats]
"""One value of a nested column: its structure with codes as leaves, and the finite floats in it, in order."""

_FLOAT_BITS = {32: pa.int32(), 64: pa.int64()}
_EPSILON = {16: 2.0**-10, 32: 2.0**-23, 64: 2.0**-52}


@dataclass(frozen=True)
class FloatColumn:
    """The finite floats of one column, one tuple for each row, and the tolerance for its type."""

    values: Sequence[Floats]
    relative_tolerance: float


@dataclass(frozen=True)
class EncodedColumn:
    full: tuple[pa.Array, ...]
    shape: tuple[pa.Array, ...]
    floats: FloatColumn | None


def encode_column(chunks: Sequence[pa.Array], options: CompareOptions) -> EncodedColumn:
    """Encode one column, given as the chunks of both answers. Called by `compare` for each column."""
    arrays = [plain(chunk) for chunk in chunks]
    if len({str(array.type) for array in arrays}) > 1:
        arrays = [array.cast(nullable(array.type)) for array in arrays]
    array = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    if pa.types.is_floating(array.type):
        return _encode_floats(array, chunks[0].type, options)
    if pa.types.is_nested(array.type) or pa.types.is_union(array.type):
        return _encode_nested(array, chunks[0].type, options)
    return EncodedColumn((array,), (array,), None)


def plain(array: pa.Array) -> pa.Array:
    """The same values in a type that Arrow's kernels group, rank and take: no dictionaries, views or extensions."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(array.storage)
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return array.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_float16(kind):
        return array.cast(pa.float32())
    return array


def nullable(kind: pa.DataType) -> pa.DataType:
    """The type with every nested field nullable, so that equality looks at types only."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, nullable(child.type)) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(nullable(kind.key_type), nullable(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(nullable(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(nullable(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(nullable(kind.value_type))
    return kind


def _encode_floats(array: pa.Array, declared: pa.DataType, options: CompareOptions) -> EncodedColumn:
    classes = _float_classes(array)
    finite = pc.if_else(pc.fill_null(pc.equal(classes, 0), False), array, pa.scalar(0.0, array.type))
    bits = finite.view(_FLOAT_BITS[array.type.bit_width])
    values = [(value,) for value in finite.to_pylist()]
    return EncodedColumn((classes, bits), (classes,), FloatColumn(values, _tolerance(declared, options)))


def _float_classes(array: pa.Array) -> pa.Array:
    """The class of each float: 0 finite, 1 NaN, 2 infinity, 3 minus infinity, null for null. Floats of different
    classes are never equal, whatever the tolerance."""
    zero = pa.scalar(0.0, array.type)
    infinite = pc.if_else(pc.greater(array, zero), pa.scalar(2, pa.int8()), pa.scalar(3, pa.int8()))
    not_nan = pc.if_else(pc.is_inf(array), infinite, pa.scalar(0, pa.int8()))
    return pc.if_else(pc.is_nan(array), pa.scalar(1, pa.int8()), not_nan)


def _tolerance(kind: pa.DataType, options: CompareOptions) -> float:
    """The widest tolerance that a float anywhere in this type needs."""
    return max((4 * _EPSILON[width] for width in _float_widths(kind) if width < 64), default=options.relative_tolerance)


def _float_widths(kind: pa.DataType) -> set[int]:
    if isinstance(kind, pa.BaseExtensionType):
        return _float_widths(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _float_widths(kind.value_type)
    if pa.types.is_floating(kind):
        return {int(kind.bit_width)}
    return {width for index in range(kind.num_fields) for width in _float_widths(kind.field(index).type)}


def _encode_nested(array: pa.Array, declared: pa.DataType, options: CompareOptions) -> EncodedColumn:
    cells = _cells(array, options)
    shape = _codes(cell for cell, _ in cells)
    floats = [values for _, values in cells]
    if not any(floats):
        return EncodedColumn((shape,), (shape,), None)
    bits = _codes(struct.pack(f"{len(values)}d", *values) for values in floats)
    return EncodedColumn((shape, bits), (shape,), FloatColumn(floats, _tolerance(declared, options)))


def _codes(values: Any) -> pa.Array:
    seen: dict[Hashable, int] = {}
    return pa.array([seen.setdefault(value, len(seen)) for value in values], pa.int64())


def _cells(array: pa.Array, options: CompareOptions) -> list[Cell]:
    array = plain(array)
    kind = array.type
    if pa.types.is_floating(kind):
        classes = _float_classes(array).to_pylist()
        return [
            (found, (value,) if found == 0 else ()) for found, value in zip(classes, array.to_pylist(), strict=True)
        ]
    if pa.types.is_struct(kind):
        return _struct_cells(array, options)
    if pa.types.is_map(kind):
        pair = pa.struct([pa.field("key", kind.key_type, False), pa.field("value", kind.item_type)])
        return _list_cells(array.cast(pa.list_(pair)), options, unordered=False)
    if _is_list(kind):
        return _list_cells(array, options, unordered=options.unordered_lists)
    return [(code, ()) for code in _leaf_codes(array)]


def _is_list(kind: pa.DataType) -> bool:
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(check(kind) for check in checks) or pa.types.is_large_list_view(kind)


def _leaf_codes(array: pa.Array) -> list[Hashable]:
    try:
        codes: list[Hashable] = array.dictionary_encode().indices.to_pylist()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return [None if value is None else repr(value) for value in array.to_pylist()]
    return codes


def _struct_cells(array: pa.Array, options: CompareOptions) -> list[Cell]:
    valid = array.is_valid().to_pylist()
    children = [_cells(child, options) for child in array.flatten()]
    rows = zip(*children, strict=True) if children else ((),) * len(array)
    return [_join(row) if is_valid else (None, ()) for is_valid, row in zip(valid, rows, strict=True)]


def _list_cells(array: pa.Array, options: CompareOptions, *, unordered: bool) -> list[Cell]:
    items = _cells(pc.list_flatten(array), options)
    cells: list[Cell] = []
    start = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            cells.append((None, ()))
            continue
        part = items[start : start + length]
        start += length
        cells.append(_join(sorted(part, key=_sort_key) if unordered else part))
    return cells


def _sort_key(cell: Cell) -> tuple[str, Floats]:
    return repr(cell[0]), cell[1]


def _join(cells: Sequence[Cell]) -> Cell:
    return tuple(shape for shape, _ in cells), tuple(value for _, values in cells for value in values)
