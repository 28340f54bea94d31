"""Work that is found while the query runs: providers, the ledger that records which task got which units, and
ready-made feeds.

The provider runs in the coordinator; tasks ask for units. `worker` reads units, `runner` brings them to the tasks.
"""
