"""Judging one kind of evidence."""
