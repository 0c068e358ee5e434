"""Findings into a plan, a plan carried out, undo and redo."""
