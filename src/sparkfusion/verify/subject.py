"""What the harness asks of a session and of its DataFrames. `OwnSession` fulfils it."""

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
    """Makes frames from SQL and tells what happens while they run.

    If it also has a `context` (a `datafusion.SessionContext`), that one is used to look into ties and limits;
    otherwise a fresh one is, which knows no object stores of the session.
    """

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> Any: ...

    def subscribe(self, subscriber: Subscriber, /) -> Callable[[], None]: ...

    @property
    def config(self) -> Any: ...


def context_of(session: VerifiableSession) -> datafusion.SessionContext | None:
    """The session's own DataFusion context, if it shows one."""
    found = getattr(session, "context", None)
    return found if isinstance(found, datafusion.SessionContext) else None


def settings_of(session: VerifiableSession) -> dict[str, str]:
    """All settings by full name, as text; empty if the session's config cannot be listed."""
    try:
        return {str(name): str(session.config[name]) for name in session.config}
    except (TypeError, KeyError, AttributeError):
        return {}


def datafusion_settings_of(session: VerifiableSession) -> dict[str, str]:
    """The settings that DataFusion's own `SessionConfig` takes."""
    runtime = "datafusion.runtime."  # limits of memory and disk, not options of planning or execution
    listed = settings_of(session).items()
    return {name: value for name, value in listed if name.startswith("datafusion.") and not name.startswith(runtime)}
