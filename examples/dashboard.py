"""An endless feed, and figures over it that are always up to date: rows arrive, a stream gives them as they come, and
closing the stream stops the feed."""

import itertools
import sys
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

import sparkfusion

SHOWN = int(sys.argv[1]) if len(sys.argv) > 1 else 5


class Sensors(sparkfusion.WorkUnitFeedProvider):
    """A new reading every twentieth of a second, for ever."""

    def feed(self, partition: int | None, context: sparkfusion.FeedContext) -> Iterator[sparkfusion.WorkUnit]:
        for number in itertools.count():
            if context.wait(0.05):  # true when nobody reads any more
                return
            yield sparkfusion.WorkUnit(number)

    def close(self) -> None:
        print("the feed was closed")


def read(unit: sparkfusion.WorkUnit, context: sparkfusion.ReaderContext) -> pa.Table:
    return pa.table({"sensor": [unit.payload % 3], "celsius": [15.0 + unit.payload % 10]})


def main() -> None:
    schema = pa.schema([("sensor", pa.int64()), ("celsius", pa.float64())])
    names = pa.record_batch({"sensor": [0, 1, 2], "name": ["roof", "cellar", "garden"]})
    with sparkfusion.connect() as session:
        session.register_feed("readings", Sensors(), schema=schema, reader=read, tasks=1)
        session.register_record_batches("sensors", [[names]])
        query = "select name, celsius from readings join sensors using (sensor) where celsius > 15"
        seen: Counter[str] = Counter()
        warmest: dict[str, float] = {}
        with session.sql(query).stream() as batches:
            for number, batch in enumerate(batches, 1):
                for row in batch.to_pylist():
                    seen[row["name"]] += 1
                    warmest[row["name"]] = max(row["celsius"], warmest.get(row["name"], 0))
                print(
                    f"update {number}:", ", ".join(f"{name} {n} (up to {warmest[name]} °C)" for name, n in seen.items())
                )
                if number == SHOWN:
                    break


if __name__ == "__main__":
    main()
