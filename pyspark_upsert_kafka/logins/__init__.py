"""How a client logs in: what Java calls its login, and tokens, which clients of Kafka and of a schema registry share."""
