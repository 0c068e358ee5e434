"""Vectors in Qdrant: on a server, or by an engine in the process."""
