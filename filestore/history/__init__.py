"""Changes of truth files: batches, backups, atomic writes, what a dead writer left."""
