"""Chunks that others made, put together into the documents they were cut from."""
