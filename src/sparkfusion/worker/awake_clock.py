"""A clock for patience: it does not count the time in which this process itself was asleep."""

from __future__ import annotations

import time
from collections.abc import Callable


class AwakeClock:
    """Counts the seconds in which this process was able to listen.

    Code that waits for a sign of life calls `tick` at every turn of its loop. If the machine is too busy to run the
    loop, or the process is suspended, a turn takes long. That says nothing about the other side, whose message may be
    waiting here, unread. So a turn counts as twice its interval at most. Any thread may read `now`; one thread ticks.

    >>> times = iter([100.0, 100.5, 130.0, 130.5])
    >>> clock = AwakeClock(0.5, lambda: next(times))
    >>> clock.tick(), clock.tick(), clock.tick()  # half a second, a pause of half a minute, half a second
    (0.5, 1.5, 2.0)

    Args:
        interval: how many seconds a turn of the loop takes on an idle machine.
    """

    def __init__(self, interval: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.now = 0.0
        self._longest = 2 * interval
        self._monotonic = monotonic
        self._ticked = monotonic()

    def tick(self) -> float:
        """Advance to the present, and return what `now` is then."""
        present = self._monotonic()
        self.now += min(present - self._ticked, self._longest)
        self._ticked = present
        return self.now
