"""The Spark runner: tasks of a stage are Spark tasks in Python workers that call the same `run_task`.

Spark owns scheduling, retries, speculation and executor loss; the coordinator reads only what a job returned. This is
the only package that imports pyspark.
"""
