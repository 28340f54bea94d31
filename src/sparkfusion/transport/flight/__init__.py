"""Workers behind Arrow Flight. Only this package and `runner.spark.driver_calls` import `pyarrow.flight`.

There is one exchange call for each task, for each held query and for each fetch of frames; small requests are actions.
"""

from sparkfusion.transport.flight.client import Flight

__all__ = ["Flight"]
