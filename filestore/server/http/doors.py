"""The ways in beside the routes of a store: the page, agents, collections."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from filestore.server.agents.server import HttpDoor
from filestore.server.http.app import Door
from filestore.server.page.serving import routes as page_routes
from filestore.server.rag.routes import routes as collection_routes

if TYPE_CHECKING:
    from filestore.server.rag.collections import Collections
    from filestore.server.stores import Stores


def doors(stores: "Stores", collections: "Collections | None") -> Sequence[Door]:
    """All of them; the gate of the application stands before each."""
    agents = HttpDoor(stores)
    return [
        Door(routes=page_routes()),
        Door(routes=agents.routes(), open=agents.running),
        Door(routes=collection_routes(collections)),
    ]
