"""Connections to brokers, whichever client is used: kept, retried, timed, encrypted, logged in.."""
