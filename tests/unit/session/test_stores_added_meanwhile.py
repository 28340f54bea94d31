"""Object stores that a user registers while tasks look at the session's stores."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from datafusion import SessionContext

from sparkfusion.session.object_stores import ObjectStores
from tests.suites.fake_s3 import FakeS3


class TaskContext:
    """The context of a task: calls a function while the first store is registered in it."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = [meanwhile]
        self.buckets: list[str | None] = []

    def register_object_store(self, scheme: str, store: Any, host: str | None = None) -> None:
        self.buckets.append(host)
        while self._meanwhile:
            self._meanwhile.pop()()


class Maker:
    """Makes stores of a bucket. When it is first pickled, it calls a function."""

    def __init__(self, bucket: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._make = FakeS3("127.0.0.1:1").store_maker()
        self.bucket = bucket
        self._meanwhile = [meanwhile]

    def __call__(self) -> Any:
        return self._make()

    def __reduce__(self) -> tuple[type[Maker], tuple[str]]:
        while self._meanwhile:
            self._meanwhile.pop()()
        return Maker, (self.bucket,)


@pytest.mark.parametrize("added", ["another", "first"])
def test_a_task_gets_the_stores_there_were(added: str) -> None:
    stores = ObjectStores()
    for bucket in ("first", "second"):
        stores.add(SessionContext(), "s3://", Maker(bucket), bucket)
    context = TaskContext(lambda: stores.add(SessionContext(), "s3://", Maker("new"), added))
    stores.prepare(context)  # type: ignore[arg-type]
    assert context.buckets == ["first", "second"]


def test_a_store_registered_anew_while_a_recipe_is_made_is_in_the_next_recipe() -> None:
    stores = ObjectStores()
    old = Maker("old", lambda: stores.add(SessionContext(), "s3://", Maker("new"), "bucket"))
    stores.add(SessionContext(), "s3://", old, "bucket")
    assert made_by(stores) == ["old"]
    assert made_by(stores) == ["new"]


def made_by(stores: ObjectStores) -> list[str]:
    recipe = stores.recipe([])
    assert recipe is not None
    return [pickle.loads(function).bucket for _, _, function in recipe.stores]
