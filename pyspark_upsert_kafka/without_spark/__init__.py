"""Tables are read in this process, without a Spark session and without Java: `read_table`, and what ``show`` shares with it."""
