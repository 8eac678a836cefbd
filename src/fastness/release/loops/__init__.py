"""The loop that keeps the configuration of a key broker."""
