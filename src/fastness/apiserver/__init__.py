"""A Kubernetes API server in one process; it knows the floor and nothing else."""
