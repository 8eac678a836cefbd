"""Rego with its traps closed, asked in a process of its own."""
