"""What the inspector's screens show, as values: rows, findings, filters, saved state. Pure.

Knows no Textual. One rule: nothing here reads or writes a file.
"""
