"""Values that every room uses: errors, findings, hashes, progress, text that is safe to show."""
