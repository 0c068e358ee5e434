"""Vectors in PostgreSQL with pgvector, in one table or spread over servers."""
