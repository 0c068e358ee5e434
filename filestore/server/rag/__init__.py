"""The routes of services that keep one index a folder: FAISS + JSON, by name."""
