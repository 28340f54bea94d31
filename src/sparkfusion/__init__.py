"""sparkfusion: DataFusion plans, distributed.

>>> import sparkfusion
>>> with sparkfusion.connect() as session:
...     session.sql("select 1 as one").to_pylist()
[{'one': 1}]
"""

TYPE_CHECKING = False  # the typing module takes longer to load than all of this
if TYPE_CHECKING:
    from sparkfusion.public import *
else:

    def __getattr__(name: str) -> object:
        """Load the public names when the first one is used.

        Loading takes a second. The command line can answer a Ctrl-C before that.
        """
        if name not in __all__:
            raise AttributeError(f"module 'sparkfusion' has no attribute {name!r}")
        from sparkfusion import public

        globals().update({each: getattr(public, each) for each in __all__})
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def load_ipython_extension(ipython):  # type: ignore[no-untyped-def]
    """Called by `%load_ext sparkfusion`."""
    from sparkfusion.notebook import magic

    magic.load(ipython)


def unload_ipython_extension(ipython):  # type: ignore[no-untyped-def]
    """Called by `%unload_ext sparkfusion`."""
    from sparkfusion.notebook import magic

    magic.unload(ipython)


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
