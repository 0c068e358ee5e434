"""Questions and summaries for what a store has: which are wanted, made and written as files."""
