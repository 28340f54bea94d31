"""The user's functions, pickled for tasks in other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import cloudpickle

from sparkfusion.errors import UserError, first_words
from sparkfusion.ids import FeedId
from sparkfusion.runner.base import QueryJob


@dataclass(frozen=True)
class PickledFunctions:
    """Pickled once for each query. Empty if tasks run in this process."""

    recipe: bytes | None = None
    readers: Mapping[FeedId, bytes | None] = field(default_factory=dict)

    @classmethod
    def pickle_all(cls, job: QueryJob, target: str) -> PickledFunctions:
        recipe = _pickle(job.recipe(), "what makes the session's object stores", target)
        readers = {each.feed: _pickle(each.reader, f"the reader of table {each.table!r}", target) for each in job.feeds}
        return cls(recipe, readers)


def _pickle(value: object, what: str, target: str) -> bytes | None:
    if value is None:
        return None
    try:
        data: bytes = cloudpickle.dumps(value)
    except Exception as error:
        raise UserError(f"{what} cannot be sent to {target}: {first_words(error)}") from error
    return data
