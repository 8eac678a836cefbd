"""Which pool a node is in."""
