"""`make bench-all`: TPC-H and TPC-DS on every engine in turn, in one run, with a report that anyone can repeat."""
