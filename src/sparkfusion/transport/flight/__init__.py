"""Workers behind Arrow Flight. Only this package imports `pyarrow.flight`.

There is one exchange call for each task, for each held query and for each fetch of frames; small requests are actions.

Some modules are used by `runner.spark` only: `feed_server` and `feed_call` give work units to Spark's tasks, `registry`
and `register_call` connect workers inside executors with the driver. They are here because they need `pyarrow.flight`.
"""

from sparkfusion.transport.flight.client import Flight

__all__ = ["Flight"]
