"""Observing queries: events while a query runs, explain before and after."""
