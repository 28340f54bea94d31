"""What PySpark's pure client for Spark Connect (`pyspark-client`) lacks: it has no JVM, and so no classic session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.util import is_remote_only

from sparkfusion.errors import UserError

if TYPE_CHECKING:
    Py4JError: Any
    Py4JJavaError: Any
else:
    try:
        from py4j.protocol import Py4JError, Py4JJavaError
    except ModuleNotFoundError:

        class Py4JError(Exception):
            """A call of the JVM failed."""

        class Py4JJavaError(Py4JError):
            """The JVM raised an exception."""


__all__ = ["Py4JError", "Py4JJavaError", "require_classic_parts"]


def require_classic_parts() -> None:
    """Raise a clear error if PySpark cannot have a classic session here."""
    if is_remote_only():
        raise UserError(
            "the PySpark of this Python (pyspark-client) can only use Spark Connect",
            hint='pass a session of SparkSession.builder.remote("sc://host:15002"), or install the extra `spark`',
        )
