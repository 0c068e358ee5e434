"""What git knows, asked safely: state, history, merges, attributes, hooks."""
