"""Seeing what happens: logs, metrics, correlation.

    logs.py     Structured logs: readable on a terminal, one JSON object per line otherwise
    meters.py   Meters and the text that Prometheus reads from them: counters, gauges, histograms
    metrics.py  Every metric there is, declared once

It imports nothing of ours, so that every room may use it. The correlation id goes from a request to the reconcile that follows
from it.
"""
