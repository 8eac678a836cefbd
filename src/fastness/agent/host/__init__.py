"""Adapters to a host: files, units, operating system, power, and what notices a change.

Each module adapts one part of a machine; the port that it fits stands beside its consumer (`agent/apply/ports.py`). For each
port there
is one that works on a real host and one that works without it (a directory, memory), and both pass the same contract tests, so
that a virtual machine runs the very agent that a real one runs.

The errors of all adapters form one tree (`errors.py`).
"""
