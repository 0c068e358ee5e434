"""The program: frame, menus, the inspector itself, and serving it to a browser."""
