"""The public names, with everything that they import. `sparkfusion` loads this module when the first name is used."""

from importlib.metadata import PackageNotFoundError, version

from datafusion import Expr, col, column, functions, lit, literal, udaf, udf, udwf

from sparkfusion.acceleration.accelerate import Acceleration, accelerate
from sparkfusion.acceleration.measurement import Measurement
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
from sparkfusion.observe.past_queries import history
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.explanation import Explanation
from sparkfusion.session.query import RunningQuery
from sparkfusion.session.session import Session, connect
from sparkfusion.transport.membership import Cluster

try:
    __version__ = version("sparkfusion")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "Acceleration",
    "Cluster",
    "DataFrame",
    "Explanation",
    "Expr",
    "ExternalError",
    "FeedContext",
    "FeedError",
    "FeedStats",
    "FileUnit",
    "InternalError",
    "Measurement",
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
    "accelerate",
    "col",
    "column",
    "connect",
    "functions",
    "history",
    "lit",
    "literal",
    "udaf",
    "udf",
    "udwf",
]
