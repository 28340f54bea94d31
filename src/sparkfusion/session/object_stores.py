"""Object stores of a session: registered in contexts of this process, and as a recipe for tasks in other processes."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
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


class ObjectStores:
    """The stores that a session registered, in that order. Each is a live object, or a function that makes one.

    A live object can be used in this process only: DataFusion's stores cannot be pickled.
    """

    def __init__(self) -> None:
        self._live: dict[tuple[str, str | None], Any] = {}
        self._functions: dict[tuple[str, str | None], Any] = {}
        self._pickled: dict[tuple[str, str | None], bytes] = {}

    def add(self, context: SessionContext, scheme: str, store: Any, host: str | None = None) -> None:
        """Register a store in a context now, and in every context that `prepare` is called with later."""
        made = _make(scheme, store) if callable(store) else store
        context.register_object_store(scheme, made, host)
        key = (scheme, host)
        for kept in (self._live, self._functions, self._pickled):
            kept.pop(key, None)  # the newest comes last, here as in a context
        self._live[key] = made
        if callable(store):
            self._functions[key] = store

    def prepare(self, context: SessionContext) -> None:
        """Give a context of this process the session's stores."""
        for (scheme, host), store in self._live.items():
            context.register_object_store(scheme, store, host)

    def same_place(self, place: str) -> str | None:
        """A scheme and a bucket for which a store was registered by name, and which are the same as these; None if
        there is no such store. `place`: such as `s3a://bucket`."""
        scheme, _, bucket = place.partition("://")
        for other in (scheme, *(_SAME if scheme in _SAME else ())):
            if (f"{other}://", bucket) in self._live:
                return f"{other}://{bucket}"
        return None

    def recipe(self, plans: Iterable[bytes]) -> StoreRecipe | None:
        """The stores for tasks in other processes; None if there are none.

        Args:
            plans: what the tasks will run. A live store that one of them reads from is a user's error.
        """
        if len(self._functions) < len(self._live):
            for url in sorted(_stores_read(plans)):
                self._check_travels(url)
        for key, function in self._functions.items():
            if key not in self._pickled:  # once: the same bytes are the same store
                self._pickled[key] = _pickle(key[0], function)
        if not self._pickled:
            return None
        return StoreRecipe(tuple((*key, self._pickled[key]) for key in self._functions))

    def _check_travels(self, url: str) -> None:
        serving = [key for key in self._live if _serves(key, url)]
        if serving and self._functions.keys().isdisjoint(serving):
            scheme, _ = serving[-1]
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
