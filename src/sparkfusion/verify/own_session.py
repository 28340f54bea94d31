"""A session of sparkfusion, as the harness asks for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import datafusion
import pyarrow as pa

from sparkfusion.plan.stage import Distribution
from sparkfusion.session.dataframe import DataFrame, look_inside
from sparkfusion.session.session import Session
from sparkfusion.verify.round_trip import run_round_trip


def _tell_nobody(leg: str) -> None:
    del leg


class OwnSession:
    """Makes frames of a session's queries.

    Args:
        tell: told what a verification does next, from any thread.
    """

    def __init__(self, session: Session, tell: Callable[[str], None] = _tell_nobody) -> None:
        self.context = session.context
        self.config = session.config
        self.subscribe = session.subscribe
        self._session = session
        self._tell = tell

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> OwnFrame:
        return OwnFrame(self._session.sql(query, param_values), self._tell)


class OwnFrame:
    """A DataFrame that is verified once."""

    def __init__(self, frame: DataFrame, tell: Callable[[str], None] = _tell_nobody) -> None:
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
        engine, query = look_inside(self._frame)
        return engine.tables.only_distributed(query.inner)

    def round_trip(self) -> pa.Table:
        self._tell("round-trip leg")
        return run_round_trip(*look_inside(self._frame))

    def collect(self) -> pa.Table:
        self._tell("distributed leg")
        self._collected = True
        return self._frame.collect()

    def explain_text(self) -> str:
        return self._frame.explain_text()
