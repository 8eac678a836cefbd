"""Node overlays: what one node has beside the config of its pool."""
