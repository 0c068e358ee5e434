"""The program: frame, menus, the inspector itself."""
