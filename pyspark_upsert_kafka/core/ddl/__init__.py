"""Flink's ``CREATE TABLE``: its columns, key, watermark and options.

What is not understood is refused with its place, never guessed. sqlglot, which reads queries (``sql/``), is not used: none of its
dialects knows Flink's statement (each refuses ``METADATA``), and importing it would take longer than all else that is done here.
"""
