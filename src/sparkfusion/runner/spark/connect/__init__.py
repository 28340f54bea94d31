"""Queries on a Spark Connect session: there is no SparkContext and no RDD, so a stage is a DataFrame job.

Tasks run the same code as on a classic session. Frames are in files: of this machine if the server runs on it, else
of a store that the client and the executors share.
"""
