"""Check that an Iceberg table's files can be read by column names instead of column ids."""

from __future__ import annotations

from string import digits
from typing import TYPE_CHECKING

from sparkfusion.feed.ready.plain_files import refusal

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

_PLAIN = frozenset(f"_{digits}")
_IMPORTED = "schema.name-mapping.default"


def check_readable_by_name(table: Table, schema: Schema, name: str) -> None:
    """Raise a `NotPlainFilesError` unless that is certain: every schema that the table ever had is known, and columns
    were only added, or dropped and never added again."""
    known = sorted(each.schema_id for each in table.metadata.schemas)
    if known != list(range(known[-1] + 1)):
        raise refusal("Iceberg", name, "its old schemas are not known, so columns may have been renamed")
    now = _columns(schema)
    ids = {id: path for path, (id, _) in now.items()}
    for old in table.metadata.schemas:
        for path, (id, type) in _columns(old).items():
            if ids.get(id, path) != path:
                raise refusal("Iceberg", name, f"column {path!r} was renamed to {ids[id]!r}")
            if path in now and now[path][0] != id:
                raise refusal("Iceberg", name, f"column {path!r} was dropped and added again")
            if path in now and now[path][1] != type:
                raise refusal("Iceberg", name, f"column {path!r} was {type} and is {now[path][1]}")
    for path, field_id in ((path, id) for path, (id, _) in now.items()):
        if not _is_kept(schema.find_field(field_id).name):
            raise refusal("Iceberg", name, f"column {path!r} has another name in files, because writers escape it")
        if schema.find_field(field_id).initial_default is not None:
            raise refusal(
                "Iceberg", name, f"column {path!r} has a default value for rows that were written before it was added"
            )
    if _IMPORTED in table.properties:
        _check_imported(table, name, set(now))


def _check_imported(table: Table, name: str, columns: set[str]) -> None:
    """Raise if the table has imported files: they have no column ids, and may lack columns whose values are in
    directory names."""
    from pyiceberg.transforms import IdentityTransform

    if any(isinstance(field.transform, IdentityTransform) for spec in table.specs().values() for field in spec.fields):
        raise refusal("Iceberg", name, "it has imported files, which may lack the values of partition columns")
    mapping = table.name_mapping()
    for field in mapping if mapping is not None else ():
        if len(field.names) > 1 or not set(field.names) <= columns:
            raise refusal("Iceberg", name, f"imported files have {' or '.join(field.names)} for the same column")


def _is_kept(name: str) -> bool:
    """Whether writers put a column's name into files unchanged. They escape characters that Avro does not allow.

    >>> [_is_kept(name) for name in ("in_euro", "größe2", "in euro", "2x", "a.b", "m²")]
    [True, True, False, False, False, False]
    """
    plain = all(character in _PLAIN or character.isalpha() for character in name)
    return plain and name[:1] not in digits


def _columns(schema: Schema) -> dict[str, tuple[int, str]]:
    """Id and type of each column, nested ones included."""
    found = {}
    for id in schema.field_ids:
        field = schema.find_field(id)
        type = str(field.field_type) if field.field_type.is_primitive else field.field_type.__class__.__name__
        found[schema.find_column_name(id) or ""] = (id, type)
    return found
