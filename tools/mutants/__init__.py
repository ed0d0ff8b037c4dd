"""`make mutants`: do the unit tests notice a small mistake in the code?"""
