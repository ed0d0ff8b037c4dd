"""Spark data source: writing."""
