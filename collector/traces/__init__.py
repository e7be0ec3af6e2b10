"""Traces of other clusters, from files into neutral tables and into the store."""
