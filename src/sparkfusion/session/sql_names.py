"""Names of tables and columns, as SQL text has them."""

from __future__ import annotations

import re

Name = tuple[str, ...]
"""One to three parts, as DataFusion reads them: in lower case unless they are quoted."""

_PART = re.compile(r"\"((?:[^\"]|\"\")+)\"|(\w+)")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def split_name(reference: str) -> Name:
    """The parts of a name as DataFusion reads it.

    >>> split_name('Default."My Table"')
    ('default', 'My Table')
    """
    parts = _PART.findall(reference)
    return tuple(quoted.replace('""', '"') if quoted else bare.lower() for quoted, bare in parts)


def is_plain_name(name: str) -> bool:
    """Whether SQL text may have the name without quotes, and DataFusion reads it unchanged.

    >>> is_plain_name("order_2"), is_plain_name("Order")
    (True, False)
    """
    return _PLAIN.fullmatch(name) is not None


def quote_name(name: str) -> str:
    """The name in quotes, whatever it contains.

    >>> quote_name('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def name_in_sql(name: str) -> str:
    """The name as SQL text has it: in quotes only if it needs them.

    >>> name_in_sql("Order"), name_in_sql("orders")
    ('"Order"', 'orders')
    """
    return name if is_plain_name(name) else quote_name(name)
