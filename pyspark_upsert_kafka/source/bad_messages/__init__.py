"""Messages that cannot be decoded: what is done with them, dead letters, and their replay."""
