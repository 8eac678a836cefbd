"""Verbs about confidential containers."""
