"""Everything that takes time: the store is read, asked and worked on here, never on the screen.

`TaskManager` is what views use. A thread reads the catalog; two child processes do the rest, one
answers questions (search, neighbours, the map), one works (verify, sync, repair, undo), so that
neither keeps a key waiting nor the other. One rule: an answer reaches the screen through `post`
only.
"""
