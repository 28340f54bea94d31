"""Java classes for the shared Spark, compiled from source by the compiler that Spark has for its own code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def java_classes(spark: SparkSession, directory: Path, sources: Mapping[str, str]) -> Iterator[None]:
    """Let Spark find classes, in calls of this thread, as long as the `with` lasts.

    Args:
        sources: the source of each class by its full name. Generics and lambdas are not understood.
    """
    for name, source in sources.items():
        path = directory / f"{name.replace('.', '/')}.java"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"package {name.rpartition('.')[0]};\n{source}")
    jvm: Any = spark.sparkContext._jvm
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    gateway: Any = spark.sparkContext._gateway
    places = gateway.new_array(jvm.java.io.File, 1)
    places[0] = jvm.java.io.File(str(directory))
    loader = jvm.org.codehaus.janino.JavaSourceClassLoader(before, places, "UTF-8")
    loader.setTargetVersion(8)
    thread.setContextClassLoader(loader)
    try:
        yield
    finally:
        thread.setContextClassLoader(before)
