from __future__ import annotations

import gc
import sys
import threading

import pytest

from sparkfusion.live_objects import LiveObjects


class One:
    pass


def test_objects_are_forgotten_when_nobody_uses_them() -> None:
    known: LiveObjects[One] = LiveObjects()
    kept = One()
    known.add(kept)
    known.add(One())
    gc.collect()
    assert list(known) == [kept]
    known.clear()
    assert list(known) == []


@pytest.mark.parametrize("attempt", range(20))  # a `WeakSet` failed in every fifth
def test_one_thread_may_add_objects_while_another_goes_through_them(attempt: int) -> None:
    known: LiveObjects[One] = LiveObjects()
    kept = [One() for _ in range(2_000)]

    def add() -> None:
        for one in kept:
            known.add(one)

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    adding = threading.Thread(target=add)
    adding.start()
    try:
        while adding.is_alive():
            assert all(isinstance(one, One) for one in known)
    finally:
        adding.join()
        sys.setswitchinterval(often)
    assert set(known) == set(kept)
