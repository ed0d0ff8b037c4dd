"""Pure decisions: no broker, no Spark session."""
