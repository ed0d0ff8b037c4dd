"""Connections to brokers, whichever client is used: the pool, retries, timeouts, TLS and logins."""
