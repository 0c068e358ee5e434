"""What a person looks at: files, pages of the catalog, vectors, diffs, evidence.

All that the inspector needs besides the public names of `filestore`; `__init__.pyi` lists it.
"""

from filestore.core.public_names import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
