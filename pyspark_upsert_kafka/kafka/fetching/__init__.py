"""How the messages of a range are read, whichever client is used."""
