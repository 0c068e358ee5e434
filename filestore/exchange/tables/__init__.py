"""Rows: JSON lines and Parquet."""
