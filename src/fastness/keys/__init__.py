"""A cluster's own keys and certificates: made, sealed, rotated."""
