"""Verbs that run on a machine."""
