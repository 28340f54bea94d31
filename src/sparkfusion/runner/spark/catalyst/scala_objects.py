"""Objects of Spark's JVM, seen from Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def class_name(thing: Any) -> str:
    """The name of an object's class, without its package, and without the mark of a Scala object."""
    return str(thing.getClass().getSimpleName()).rstrip("$")


def items(sequence: Any) -> list[Any]:
    """The items of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def scala_seq(jvm: Any, things: Sequence[Any]) -> Any:
    """A Scala sequence of these objects."""
    return jvm.PythonUtils.toSeq(list(things))


def is_instance(jvm: Any, thing: Any, kind: str) -> bool:
    """Whether an object has this class or trait, by its full name."""
    return bool(jvm.java.lang.Class.forName(kind).isInstance(thing))
