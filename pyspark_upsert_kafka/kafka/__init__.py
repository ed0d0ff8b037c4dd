"""The edge: the only importer of a Kafka client."""
