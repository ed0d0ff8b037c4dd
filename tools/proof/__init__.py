"""`make proof`: see `__main__`."""
