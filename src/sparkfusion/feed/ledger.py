"""The ledger of one feed: which units were given to which task, in order. No I/O, no threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sparkfusion.feed.unit_codec import pack


@dataclass(frozen=True)
class Grant:
    """Packed units that a task was given at once."""

    data: bytes
    units: int

    @classmethod
    def of(cls, encoded: Iterable[str]) -> Grant:
        units = list(encoded)
        return cls(pack(units), len(units))


@dataclass
class _Page:
    """The grants of one task. A sealed page is not extended."""

    grants: list[Grant] = field(default_factory=list)
    sealed: bool = False
    acknowledged: int = 0


class Ledger:
    """One page for each task. An attempt reads its page by offset, so every attempt sees the same grants in the same
    order. After the last one it gets new grants. Pages are kept until the query ends.

    >>> ledger = Ledger()
    >>> ledger.append(0, Grant.of(['{"j":1}', '{"j":2}']))
    >>> ledger.at(0, 0) == ledger.at(0, 0), ledger.at(0, 1), ledger.at(1, 0)
    (True, None, None)
    """

    def __init__(self) -> None:
        self._pages: dict[int, _Page] = {}
        self.given = 0
        self.done = 0

    def at(self, task: int, offset: int) -> Grant | None:
        """The grant at that offset of the task's page; None if the page is not that long."""
        grants = self._page(task).grants
        return grants[offset] if offset < len(grants) else None

    def length(self, task: int) -> int:
        return len(self._page(task).grants)

    def append(self, task: int, grant: Grant) -> None:
        self._page(task).grants.append(grant)
        self.given += grant.units

    def acknowledge(self, task: int, offset: int) -> None:
        """Note that the task has done everything before that offset."""
        page = self._page(task)
        upto = min(offset, len(page.grants))
        while page.acknowledged < upto:
            self.done += page.grants[page.acknowledged].units
            page.acknowledged += 1

    def seal(self, task: int) -> None:
        self._page(task).sealed = True

    def is_sealed(self, task: int) -> bool:
        return self._page(task).sealed

    def _page(self, task: int) -> _Page:
        return self._pages.setdefault(task, _Page())
