"""cluster/embedded."""
