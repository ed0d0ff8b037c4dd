"""Flink itself, for comparison."""
