"""`make scale`: how large tables, many partitions and many micro-batches are read and written; see `__main__`."""
