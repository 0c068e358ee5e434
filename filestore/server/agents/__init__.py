"""MCP: what an agent may ask, and where programs are told of it."""
