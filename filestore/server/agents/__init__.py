"""MCP: what an agent may ask, and the configuration of programs that start the server."""
