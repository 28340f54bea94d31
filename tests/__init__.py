"""Tests of sparkfusion; `tests.fuzz` and `tests.suites` are shared by several of them."""
