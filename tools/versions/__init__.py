"""Which versions of Kafka, Python, PySpark and other packages work together: runs tests with each, and makes docs/versions.md."""
