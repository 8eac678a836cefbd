"""Reference values and their life."""
