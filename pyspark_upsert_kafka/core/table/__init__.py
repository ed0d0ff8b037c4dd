"""The table that a topic holds: its columns, its key, its metadata, and which kinds of change there are."""
