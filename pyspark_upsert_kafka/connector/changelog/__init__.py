"""Functions over DataFrames of changes."""
