"""Running one task: a TaskOrder goes in, a TaskReport comes out. Every runner uses the same function.

`runner` decides where a task runs; its rows leave through a sink of `exchange`.
"""
