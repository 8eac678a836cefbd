"""Concluding, distrusting, overriding, explaining."""
