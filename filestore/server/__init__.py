"""Doors for programs, agents and browsers: stores kept open, asked over HTTP, MCP and a socket."""
