"""Messages that a task writes, and what became of them, whichever client is used."""
