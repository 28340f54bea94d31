"""A bucket with 100,000 objects is listed in pages of 1,000, as S3 does. The query reads objects while later pages are
still being listed. The objects here are a few files under many names, so that the example needs no bucket."""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion

OBJECTS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
PAGE, ROWS = 1_000, 3


class Bucket(sparkfusion.WorkUnitFeedProvider):
    """Lists the bucket. It runs in this process; tasks read the objects."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        self.listed = 0
        self.started = time.monotonic()

    def feed(self, partition: int | None, context: sparkfusion.FeedContext) -> Iterator[sparkfusion.WorkUnit]:
        for first in range(0, OBJECTS, PAGE):
            if context.wait(0.01):  # the time that a page takes; true if the query needs no more
                return
            self.listed += min(PAGE, OBJECTS - first)
            for number in range(first, min(first + PAGE, OBJECTS)):
                yield sparkfusion.WorkUnit(str(self._files[number % len(self._files)]))


def read_object(unit: sparkfusion.WorkUnit, context: sparkfusion.ReaderContext) -> pa.Table:
    return pq.read_table(unit.payload, columns=list(context.projection))


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        files = [Path(home, f"{number}.parquet") for number in range(10)]
        for number, file in enumerate(files):
            pq.write_table(pa.table({"shard": [number] * ROWS, "value": [1.0, 2.0, 3.0]}), file)
        bucket = Bucket(files)
        with sparkfusion.connect() as session:
            session.register_feed("objects", bucket, schema=pq.read_schema(files[0]), reader=read_object)
            with session.sql("select shard, value from objects").stream() as batches:
                first = next(iter(batches))
                print(f"first {first.num_rows} rows after listing {bucket.listed:,} of {OBJECTS:,} objects")
            session.sql("select count(*) as n, sum(value) as total from objects").show()


if __name__ == "__main__":
    main()
