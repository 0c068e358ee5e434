"""The three pages: Browse, Verify, Repair."""
