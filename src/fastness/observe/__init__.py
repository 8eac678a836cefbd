"""Seeing what happens: logs, metrics, correlation.

    context.py  The correlation id: one value that follows a request through logs, audit lines and the objects it causes
    logs.py     Structured logs: readable on a terminal, one JSON object per line otherwise
    metrics.py  Every metric there is, declared once

It imports nothing of ours, so that every room may use it. The correlation id goes from a request to the reconcile that follows
from it.
"""
