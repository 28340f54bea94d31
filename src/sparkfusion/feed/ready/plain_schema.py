"""Convert schemas of other libraries to the types that DataFusion reads from files."""

from __future__ import annotations

import pyarrow as pa


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata, extension types and large offsets, none of which a scan needs.

    >>> plain_schema(pa.schema([pa.field("a", pa.large_string(), metadata={"id": "1"})]))
    a: string
    """
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type), field.nullable)


def _plain_type(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType):
        return _plain_type(type.storage_type)
    if pa.types.is_large_string(type):
        return pa.string()
    if pa.types.is_large_binary(type):
        return pa.binary()
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(_plain_field(type.value_field))
    if pa.types.is_struct(type):
        return pa.struct([_plain_field(field) for field in type])
    if pa.types.is_map(type):
        return pa.map_(_plain_field(type.key_field), _plain_field(type.item_field))
    return type
