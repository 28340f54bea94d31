"""Queries of Spark, answered by sparkfusion if it would give the same answer."""
