"""What keys do: the table of actions, their context, the page of keys."""
