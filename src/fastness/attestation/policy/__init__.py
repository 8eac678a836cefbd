"""Policies on claims."""
