"""Seeing what happens: logs, metrics, correlation.

The one package beside `model` that imports nothing of ours, so that every layer may use it. `context.py` carries the
correlation id from a request to the reconcile that follows from it, `logs.py` writes structured lines, `metrics.py`
declares every metric there is.
"""
