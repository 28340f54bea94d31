"""The programs of `examples/`."""
