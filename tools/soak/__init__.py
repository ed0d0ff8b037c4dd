"""`make soak`: see `__main__`."""
