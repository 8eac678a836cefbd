"""Verbs about images of machines."""
