"""Tasks in child processes of a worker: a crash, a leak or a hung function costs one child and one attempt.

The worker keeps the queries, the network and the frames. A child runs one task at a time from what the worker sends it,
writes frames into directories that the worker made, and speaks with the worker over a socket that only they have.
"""
