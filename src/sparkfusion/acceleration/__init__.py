"""Run queries of Spark with sparkfusion, if it gives the same answer."""
