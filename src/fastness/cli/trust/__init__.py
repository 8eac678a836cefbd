"""Verbs about who is believed, and why."""
