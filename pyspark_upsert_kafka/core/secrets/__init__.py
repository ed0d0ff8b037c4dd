"""Secrets: references to them, how they are masked, and key stores."""
