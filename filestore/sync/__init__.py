"""Brings the sidecar up to date with the tree, and changes its model."""
