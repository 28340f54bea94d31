"""Calls from executors to the driver over Arrow Flight.

`feed_server` and `feed_call` give work units to Spark's tasks; `registry` and `register_call` connect resident workers
with the driver.
"""
