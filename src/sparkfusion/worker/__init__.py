"""One task, anywhere: a TaskOrder goes in, a TaskReport comes out. The same function on every runner.

`runner` decides where it runs; rows leave through a sink of `exchange`.
"""
