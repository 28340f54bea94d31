"""Which leg of a verification runs, told when it begins. The harness calls a frame's methods leg by leg."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import datafusion
import pyarrow as pa

from sparkfusion.plan.stage import Distribution

if TYPE_CHECKING:
    from sparkfusion import DataFrame, Session


class WatchedSession:
    """The part of a session that `verify_query` needs; its frames tell what begins, from any thread."""

    def __init__(self, session: Session, tell: Callable[[str], None]) -> None:
        self.context = session.context
        self.config = session.config
        self.subscribe = session.subscribe
        self._session = session
        self._tell = tell

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> WatchedFrame:
        return WatchedFrame(self._session.sql(query, param_values), self._tell)


class WatchedFrame:
    """A frame that is verified once."""

    def __init__(self, frame: DataFrame, tell: Callable[[str], None]) -> None:
        self._frame = frame
        self._tell = tell
        self._collected = False

    def to_datafusion(self) -> datafusion.DataFrame:
        self._tell("comparing the answers" if self._collected else "single-node leg")
        return self._frame.to_datafusion()

    def distribution(self) -> Distribution:
        self._tell("planning")
        return self._frame.distribution()

    def only_distributed(self) -> str | None:
        return self._frame.only_distributed()

    def round_trip(self) -> pa.Table:
        self._tell("round-trip leg")
        return self._frame.round_trip()

    def collect(self) -> pa.Table:
        self._tell("distributed leg")
        self._collected = True
        return self._frame.collect()

    def explain_text(self) -> str:
        return self._frame.explain_text()
