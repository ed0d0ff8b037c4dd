"""`make docs` writes the dashboard: see `__main__`."""
