"""Formatting: values of the store into lines of text. Pure; knows no Textual, no Rich.

One rule: every text of a line is safe for a terminal, whatever the file, name or key it came from.
"""
