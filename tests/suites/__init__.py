"""What the tests of the TPC suites share."""
