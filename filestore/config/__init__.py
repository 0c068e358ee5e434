"""What is set: a store's settings, the user's own, where files lie, which store is used."""
