"""Planning: pure functions from a DataFusion plan to a stage graph. No I/O, no clock, no runner.

A query comes from `session`, passes `gate`, `rules`, `cut` and `isolate` here, and goes on to `runner`.
"""
