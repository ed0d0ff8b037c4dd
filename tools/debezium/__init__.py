"""A real Postgres with Debezium's own connector, for ``make test-debezium``."""
