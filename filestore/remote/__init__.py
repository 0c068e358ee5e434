"""Services at an address: how one is reached, how it is asked, what it says is wrong."""

from filestore.core.errors import FilestoreError, RefusedError


class EndpointError(FilestoreError, ConnectionError):
    """A service does not answer as it should. The message never contains its key."""


class EndpointUnusable(EndpointError):
    """A service that takes no request of ours: gone, moved, it refuses the key, nothing is left."""


class EndpointUntrusted(RefusedError):
    """The store's settings name a service that the user did not allow it to reach."""
