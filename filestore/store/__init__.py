"""The store: the one face of all rooms below, for programs, the command line, servers and screens.

A class or a function here hands over to the room that does the work.
"""

from filestore.store.writing import Store as Store
from filestore.store.writing import create as create
from filestore.store.writing import open as open
