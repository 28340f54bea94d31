"""Workers behind Arrow Flight. Only this package imports `pyarrow.flight` for workers.

One exchange call for each task, for each held query and for each fetch of frames; small questions are actions.
"""

from sparkfusion.transport.flight.client import Flight

__all__ = ["Flight"]
