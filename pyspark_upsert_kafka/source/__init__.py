"""Spark data source: reading."""
