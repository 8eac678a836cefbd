"""Verbs about the configuration of machines."""
