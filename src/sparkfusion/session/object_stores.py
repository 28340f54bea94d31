"""Object stores of a session: registered in contexts of this process, and as a recipe for tasks in other processes."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import cloudpickle
from datafusion import SessionContext, object_store

from sparkfusion.errors import UserError, classify, first_words
from sparkfusion.plan.wire import decode, file_scan_conf, walk

_SAME = ("s3", "s3a", "s3n")  # three clients of Hadoop for the same buckets
_MAKE = "pass a function that creates it, for example register_object_store({scheme!r}, lambda: AmazonS3(...), host)"


@dataclass(frozen=True)
class StoreRecipe:
    """How to make the stores of a session in another process. It is sent with tasks, which call it with their context.

    A store is made once in each process, however many tasks use it. Its functions may hold secrets, so its text shows
    none.
    """

    stores: tuple[tuple[str, str | None, bytes], ...] = field(repr=False)

    def __call__(self, context: SessionContext) -> None:
        for scheme, host, function in self.stores:
            context.register_object_store(scheme, _make_once(scheme, function), host)


@dataclass(frozen=True)
class _Registered:
    """A live store, and the function that made it, if it was registered by one."""

    scheme: str
    live: Any
    function: Any = None

    @cached_property
    def pickled(self) -> bytes:
        """The function, pickled once: the same bytes are the same store."""
        return _pickle(self.scheme, self.function)


_Stores = dict[tuple[str, str | None], _Registered]


class ObjectStores:
    """The stores that a session registered, in that order. Each is a live object, or a function that makes one.

    A live object can be used in this process only: DataFusion's stores cannot be pickled. Any thread may call any
    method: tasks look at the stores while a user registers others.
    """

    def __init__(self) -> None:
        self._stores: _Stores = {}  # replaced by another one, never changed
        self._adding = threading.Lock()

    def add(self, context: SessionContext, scheme: str, store: Any, host: str | None = None) -> None:
        """Register a store in a context now, and in every context that `prepare` is called with later."""
        made = _Registered(scheme, _make(scheme, store), store) if callable(store) else _Registered(scheme, store)
        with self._adding:
            context.register_object_store(scheme, made.live, host)
            others = {key: kept for key, kept in self._stores.items() if key != (scheme, host)}
            self._stores = {**others, (scheme, host): made}  # the newest comes last, here as in a context

    def prepare(self, context: SessionContext) -> None:
        """Give a context of this process the session's stores."""
        for (scheme, host), store in self._stores.items():
            context.register_object_store(scheme, store.live, host)

    def same_place(self, place: str) -> str | None:
        """A scheme and a bucket for which a store was registered by name, and which are the same as these; None if
        there is no such store. `place`: such as `s3a://bucket`."""
        stores = self._stores
        scheme, _, bucket = place.partition("://")
        for other in (scheme, *(_SAME if scheme in _SAME else ())):
            if (f"{other}://", bucket) in stores:
                return f"{other}://{bucket}"
        return None

    def recipe(self, plans: Iterable[bytes]) -> StoreRecipe | None:
        """The stores for tasks in other processes; None if there are none.

        Args:
            plans: what the tasks will run. A live store that one of them reads from is a user's error.
        """
        stores = self._stores
        made_there = {key: store for key, store in stores.items() if store.function is not None}
        if len(made_there) < len(stores):
            for url in sorted(_stores_read(plans)):
                _check_can_be_sent(stores, url)
        return StoreRecipe(tuple((*key, store.pickled) for key, store in made_there.items())) if made_there else None


def _check_can_be_sent(stores: _Stores, url: str) -> None:
    serving = [store for key, store in stores.items() if _serves(key, url)]
    if serving and all(store.function is None for store in serving):
        scheme = serving[-1].scheme
        raise UserError(
            f"executors cannot read {url}: the object store of {scheme!r} exists only in this process",
            hint=_MAKE.format(scheme=scheme),
        )


def _serves(key: tuple[str, str | None], url: str) -> bool:
    """Whether a store may be the one of a URL. Without a host, only DataFusion knows the store's bucket."""
    scheme, host = key
    return url.rstrip("/") == f"{scheme}{host}" if host is not None else url.startswith(scheme)


def _stores_read(plans: Iterable[bytes]) -> set[str]:
    """The URLs of stores that plans read. The store of local files is left out: every process has its own."""
    nodes = (node for plan in plans for node in walk(decode(plan)))
    found = {conf.object_store_url for node in nodes if (conf := file_scan_conf(node)) is not None}
    return {url for url in found if not url.startswith("file:")}


def _pickle(scheme: str, function: Any) -> bytes:
    target = io.BytesIO()
    try:
        _Pickler(target).dump(function)
    except Exception as error:
        raise UserError(
            f"the function that makes the object store of {scheme!r} cannot be pickled: {first_words(error)}",
            hint="it must not refer to a store, a connection or a lock; create them inside the function",
        ) from error
    return target.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles DataFusion's store classes by their real module: the one that they name does not exist."""

    def reducer_override(self, obj: Any) -> Any:
        name = obj.__name__ if isinstance(obj, type) else ""
        if name and getattr(object_store, name, None) is obj:
            return _store_class, (name,)
        return super().reducer_override(obj)


def _store_class(name: str) -> Any:
    return getattr(object_store, name)


def _make(scheme: str, function: Any) -> Any:
    """The store that a function makes; the function may be pickled."""
    try:
        return (pickle.loads(function) if isinstance(function, bytes) else function)()
    except Exception as error:
        words = f"{type(error).__name__}: {first_words(error)}"
        message = f"the function that makes the object store of {scheme!r} failed: {words}"
        raise type(classify(error))(message) from error


_make_once = lru_cache(maxsize=64)(_make)
