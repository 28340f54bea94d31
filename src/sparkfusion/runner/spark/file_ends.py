"""The last bytes of files that only Spark can read, wherever they are: footers, to compare them with a table."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from sparkfusion.errors import ExternalError, first_words


def read_end(session: SparkSession, url: str, size: int, count: int) -> bytes:
    """The last `count` bytes of a file of `size` bytes, read by Spark's driver. Any thread may call it."""
    jvm: Any = session._jvm
    try:
        path = jvm.org.apache.hadoop.fs.Path(url)
        stream = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()).open(path)
        try:
            stream.seek(size - count)
            return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream, count))
        finally:
            stream.close()
    except Exception as error:
        raise ExternalError(f"Spark cannot read {url}: {first_words(error)}") from error
