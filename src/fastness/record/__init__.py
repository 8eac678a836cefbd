"""The record as decisions: which entries follow which, and what is missing."""
