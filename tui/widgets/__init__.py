"""Widgets that know no store: rows by number, text, pictures, drawn a line at a time."""
