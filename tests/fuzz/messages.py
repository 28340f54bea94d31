"""Random changes of orders: what a worker's checks make of a message, and what becomes of those that they let pass.

`python -m tests.fuzz.messages --count 100000 --seed 1` tries many. It prints how they were answered, and fails if one
hung or something of them was left. `--part 0/4` is every fourth of them, for several runs at the same time.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import pyarrow as pa

from sparkfusion.errors import ResourceError, UserError
from sparkfusion.ids import TaskKey
from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import unpack
from sparkfusion.worker.server.guard import Guard
from sparkfusion.worker.task import TaskOrder
from tests.fuzz.worker import HUNG, trial
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


def answer(message: bytes, run: Callable[[TaskOrder], str] = lambda order: "passes") -> str:
    """How a strict worker answers: the name of the error by which it refuses, or what came of running the order.

    Any other error comes out.
    """
    try:
        _, fields, blobs = unpack(message, MOST)
        order = order_of(fields, blobs)
        Guard().check(order)
    except (UserError, ResourceError) as error:
        return f"refused, {type(error).__name__}"
    return run(order)


def tally(tried: Iterable[bytes], run: Callable[[TaskOrder], str], seconds: float) -> Counter[str]:
    """The answers to these messages, or to as many as that time is enough for. Tells of crashes as they come."""
    found: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    for number, message in enumerate(tried):
        if time.monotonic() > deadline:
            break
        kind = answer(message, run)
        found[kind] += 1
        if kind == HUNG or "Crash" in kind:
            print(f"message {number:,}: {kind}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--minutes", type=float, default=120)
    given = parser.parse_args()
    first, step = map(int, given.part.split("/"))
    with trial() as worker:
        tried = islice(messages(given.seed, given.count), first, None, step)
        found = tally(tried, worker.answer, given.minutes * 60)
        left = worker.left()
    print(f"{found.total():,} messages: " + "; ".join(f"{name}: {count:,}" for name, count in found.most_common()))
    print(f"left: {', '.join(left) or 'nothing'}")
    sys.exit(bool(left or found[HUNG]))


if __name__ == "__main__":
    main()
