"""Where reading stands and what is read next: offsets, ranges, bounds, and data that is gone."""
