"""The page in a browser: its files, which ask the routes of HTTP for everything else."""

from filestore.server.page.serving import routes

__all__ = ["routes"]
