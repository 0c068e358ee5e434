"""Folders of Markdown pages, for people: an Obsidian vault, a static folder."""
