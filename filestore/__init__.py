"""A knowledge store of files: chunk files are the truth, a sidecar follows, search answers.

The public names are listed in `__init__.pyi`; each is loaded when it is first used.
"""

from filestore._version import __version__ as __version__
from filestore.core.public_names import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
