"""Spark's face of reading."""
