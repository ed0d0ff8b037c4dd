"""Flink itself, to compare with."""
