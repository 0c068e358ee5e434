"""Looks at a store and finds drift and damage. Never writes."""
