"""Vectors for tests."""

import numpy as np


def unit_rows(count, seed=0, dimension=24):
    """Of length 1, in all directions."""
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def clustered_rows(count, seed=0, centres=60, dimension=64):
    """Around centres of uneven sizes, as texts on some subjects are."""
    generator = np.random.default_rng(seed)
    places = unit_rows(centres, seed=99, dimension=dimension)
    weights = 1 / np.arange(1, centres + 1)
    chosen = generator.choice(centres, size=count, p=weights / weights.sum())
    rows = places[chosen] + generator.normal(size=(count, dimension)) * 0.06
    rows = rows.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
