"""Streaming queries seen from outside: lag, rows, bad messages."""
