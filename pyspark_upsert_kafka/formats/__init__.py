"""Formats of keys and values: pure codecs between bytes and Arrow."""
