"""Every public method of the classes that users call has an example, which the doctests run."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

import sparkfusion

ON_SPARK = "it needs a SparkSession; the snippets of docs/spark.md run it"
NO_AVRO = "no package here writes Avro files"
WITHOUT = {
    "DataFrame.to_spark": ON_SPARK,
    "DataFrame.write_spark_table": ON_SPARK,
    "DataFrame.union_distinct": "it is deprecated",
    "Session.register_spark": ON_SPARK,
    "Session.register_avro": NO_AVRO,
    "Session.read_avro": NO_AVRO,
}
CLASSES = [sparkfusion.Session, sparkfusion.DataFrame, sparkfusion.RunningQuery, sparkfusion.Explanation]


def members(kind: type) -> dict[str, object]:
    own = [each for each in reversed(kind.__mro__) if each.__module__.startswith("sparkfusion")]
    return {name: value for each in own for name, value in vars(each).items() if not name.startswith("_")}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_public_method_has_an_example(kind: type) -> None:
    without = {f"{kind.__name__}.{name}" for name, value in members(kind).items() if ">>>" not in (value.__doc__ or "")}
    assert without == {name for name in WITHOUT if name.startswith(f"{kind.__name__}.")}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_doctests_find_every_method(kind: type) -> None:
    """They look only at what says that it is from the module that they look at."""
    for each in (each for each in kind.__mro__ if each.__module__.startswith("sparkfusion")):
        module = importlib.import_module(each.__module__)
        found = {test.name for test in doctest.DocTestFinder(exclude_empty=True).find(each, each.__qualname__, module)}
        aliases = {value for base in each.__mro__[1:] for value in vars(base).values() if inspect.isfunction(value)}
        written = {
            f"{each.__qualname__}.{value.__name__}"
            for value in vars(each).values()
            if inspect.isfunction(value) and ">>>" in (value.__doc__ or "") and value not in aliases
        }
        assert written <= found
        assert written or not any(inspect.isfunction(value) for value in vars(each).values())


def test_connect_has_an_example() -> None:
    assert ">>>" in (sparkfusion.connect.__doc__ or "")
