"""Programs that stand in for those that cannot be had here, with the state and the answers of the real ones."""
