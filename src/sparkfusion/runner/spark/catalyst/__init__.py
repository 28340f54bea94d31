"""Plans of Spark's optimizer, Catalyst: written as SQL text that Spark itself has found to mean the same.

Only classic sessions show their plans.
"""
