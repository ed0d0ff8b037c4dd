"""Spark's face of writing."""
