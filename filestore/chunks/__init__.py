"""Chunk files and resource records: bytes into values and back, names, order, links."""
