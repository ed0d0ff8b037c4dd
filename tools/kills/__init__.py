"""`make kills`: see `__main__`."""
