"""The disk: files, locks, transactions, the tree walk, forked and child processes."""
