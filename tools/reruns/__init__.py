"""`make reruns`: see `__main__`."""
