"""Verbs that run a cluster, or something of it."""
