"""The verifier of a cluster, with its caches and documents."""
