"""Leaf work that is found while the query runs: providers, the ledger that hands units out, and ready-made feeds.

The provider runs on the coordinator; tasks pull. `worker` reads units, `runner` brings them to where tasks run.
"""
