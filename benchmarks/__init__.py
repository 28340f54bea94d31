"""Benchmarks, and what they share with the tests: the TPC suites."""
