"""A table of Iceberg or Delta Lake is kept in step with a stream of changes: `merge_sink`."""
