"""One config for a pool."""
