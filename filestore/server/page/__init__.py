"""The page in a browser: search, documents, status, map. Plain files, from here alone."""
