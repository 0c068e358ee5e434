"""Documents into chunk files: sources, extraction, names, regeneration, removal."""
