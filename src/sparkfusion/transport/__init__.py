"""How a coordinator talks to workers: one contract (`base`), and several transports for it (`in_process`, `flight`).

`worker.server` is the worker behind every transport. Nothing outside this package knows which transport is used.
"""
