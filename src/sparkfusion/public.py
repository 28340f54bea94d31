"""The public names, with everything that they import. `sparkfusion` loads this module when the first name is used."""

from importlib.metadata import PackageNotFoundError, version

from sparkfusion.errors import (
    ExternalError,
    InternalError,
    PlanTooDeepError,
    PlanTooLargeError,
    QueryCancelledError,
    ResourceError,
    SparkfusionError,
    StoreFullError,
    TaskCrashError,
    UserError,
    VerificationError,
    WireFormatError,
    WorkerLostError,
)
from sparkfusion.feed.dispatch import FeedError, FeedStats
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.provider import FeedContext, ReaderContext, WorkUnitFeedProvider
from sparkfusion.feed.rejected import Rejected, RejectedLine
from sparkfusion.feed.units import FileUnit, WorkUnit
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.query import RunningQuery
from sparkfusion.session.session import Session, connect
from sparkfusion.transport.membership import Cluster

try:
    __version__ = version("sparkfusion")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "Cluster",
    "DataFrame",
    "ExternalError",
    "FeedContext",
    "FeedError",
    "FeedStats",
    "FileUnit",
    "InternalError",
    "PlanTooDeepError",
    "PlanTooLargeError",
    "QueryCancelledError",
    "ReaderContext",
    "Rejected",
    "RejectedLine",
    "ResourceError",
    "RunningQuery",
    "Session",
    "SparkfusionError",
    "StoreFullError",
    "TaskCrashError",
    "UserError",
    "VerificationError",
    "WireFormatError",
    "WorkUnit",
    "WorkUnitFeed",
    "WorkUnitFeedProvider",
    "WorkerLostError",
    "__version__",
    "connect",
]
