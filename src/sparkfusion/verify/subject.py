"""The interface of sessions and DataFrames that verify uses. `OwnSession` implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import datafusion
import pyarrow as pa

from sparkfusion.observe.events import Subscriber
from sparkfusion.plan.stage import Distribution


class VerifiableDataFrame(Protocol):
    """A lazy query that can be run in three ways."""

    def to_datafusion(self) -> datafusion.DataFrame: ...

    def round_trip(self) -> pa.Table: ...

    def collect(self) -> pa.Table: ...

    def distribution(self) -> Distribution: ...

    def only_distributed(self) -> str | None: ...

    def explain_text(self) -> str: ...


class VerifiableSession(Protocol):
    """Makes DataFrames from SQL and emits events while they run. Its `context` runs the checks of ties and limits."""

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> Any: ...

    def subscribe(self, subscriber: Subscriber, /) -> Callable[[], None]: ...

    @property
    def context(self) -> datafusion.SessionContext: ...

    @property
    def config(self) -> Mapping[str, str]: ...


def datafusion_settings_of(session: VerifiableSession) -> dict[str, str]:
    """The session's settings that DataFusion's own `SessionConfig` accepts."""
    runtime = "datafusion.runtime."  # limits of memory and disk, not options of planning or execution
    listed = session.config.items()
    return {name: value for name, value in listed if name.startswith("datafusion.") and not name.startswith(runtime)}
