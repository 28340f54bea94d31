"""Distributed answers against single-node answers."""
