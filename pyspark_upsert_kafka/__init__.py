"""Kafka topics as tables for PySpark."""
