"""CDC formats: an envelope is decoded as a row of columns, and what it says becomes rows of the table."""
