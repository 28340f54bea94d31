"""Tasks in child processes of a worker: a crash, a leak or a hung function ends one child and one attempt.

The worker keeps the queries, the network and the frames. A child runs one task at a time that the worker sends it,
writes frames into directories that the worker made, and talks to the worker over a socket that only they have.
"""
