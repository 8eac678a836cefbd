"""What machines, guests and the cluster say to each other; pure, and imported by both sides."""
