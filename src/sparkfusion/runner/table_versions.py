"""Names that mean a version of a table: Spark's `t VERSION AS OF 3` is the name `"t VERSION AS OF 3"` here."""

from __future__ import annotations

import re
from collections.abc import Sequence

_VERSION = re.compile(r"(?P<table>.+?) (?P<kind>VERSION|TIMESTAMP) AS OF (?P<value>[^'\\]+)", re.DOTALL)


def split_version(name: Sequence[str]) -> tuple[tuple[str, ...], str] | None:
    """The parts of a table's name, and which of its versions is meant, as Spark writes it; None if none is.

    >>> split_version(("shop", "orders TIMESTAMP AS OF 2026-01-31"))
    (('shop', 'orders'), "TIMESTAMP AS OF '2026-01-31'")
    >>> split_version(("shop", "orders")) is None
    True
    """
    found = _VERSION.fullmatch(name[-1])
    return None if found is None else ((*name[:-1], found["table"]), f"{found['kind']} AS OF '{found['value']}'")
