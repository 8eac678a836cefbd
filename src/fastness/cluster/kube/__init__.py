"""cluster/kube."""
