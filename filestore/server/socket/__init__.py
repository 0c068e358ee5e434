"""Commands of the same user, answered by the process that has the store open."""
