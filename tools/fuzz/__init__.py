"""`make fuzz`: every format reads random messages, good and bad, by all its paths; they must agree."""
