"""`python -m tools.histories`: see `__main__`."""
