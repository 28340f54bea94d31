"""Random changes of orders: what a worker makes of a message before anything native sees its plan.

`python -m tests.fuzz.messages --count 100000 --seed 1` tries many, and prints how each was answered.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from sparkfusion.errors import ResourceError, UserError
from sparkfusion.ids import TaskKey
from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.guard import Guard
from sparkfusion.transport.message import unpack
from tests.transport.plans import order_of_sql

QUERIES = (
    "select k, sum(v) from t where v > 1 or k like 'a%' group by k order by k limit 3",
    "select a.k, row_number() over (order by a.v) from t a join t b on a.k = b.k and a.v < b.v",
    "select case when v > 1 then cast(v as double) else -v end, abs(v) from t union all select 1.0, 2 from t",
)
MOST = 1 << 20


def seeds() -> list[bytes]:
    tables = {"t": pa.table({"k": ["a", "b"], "v": [1, 2]})}
    return [pack_order(order_of_sql(sql, TaskKey("q", 1, 0), "here", tables=tables)) for sql in QUERIES]


def mutated(chance: random.Random, message: bytes) -> bytes:
    """Some bytes changed, cut out, doubled or put in, at random places."""
    data = bytearray(message)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(data) + 1)
        size = chance.choice((1, 1, 2, 8, 64))
        change = chance.randrange(4)
        if change == 0 and at < len(data):
            data[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        elif change == 1:
            del data[at : at + size]
        elif change == 2:
            data[at:at] = data[at : at + size]
        else:
            data[at:at] = chance.randbytes(size)
    return bytes(data)


def messages(seed: int, count: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    known = seeds()
    return (mutated(chance, chance.choice(known)) for _ in range(count))


def answer(message: bytes) -> str:
    """How a strict worker answers: the name of its error, or that it would run the order. Any other error comes out."""
    try:
        _, fields, blobs = unpack(message, MOST)
        Guard().check(order_of(fields, blobs))
    except (UserError, ResourceError) as error:
        return type(error).__name__
    return "runs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tally = Counter(map(answer, messages(given.seed, given.count)))
    print(", ".join(f"{name}: {count:,}" for name, count in tally.most_common()))


if __name__ == "__main__":
    main()
