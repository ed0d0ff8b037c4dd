"""What a task does: a range's messages become rows."""
