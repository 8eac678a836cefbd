"""What the cluster says of itself."""
