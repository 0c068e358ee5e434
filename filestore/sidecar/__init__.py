"""The derived parts of one store, opened together: session, snapshot, commit, recovery."""
