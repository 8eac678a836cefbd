"""What the doors of release share over a cluster: tokens, callers, settings, sources."""
