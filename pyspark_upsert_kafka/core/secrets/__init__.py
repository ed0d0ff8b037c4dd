"""What must not be shown, and where it comes from: references, masks, key stores."""
