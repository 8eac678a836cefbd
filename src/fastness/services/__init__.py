"""The doors: everything that listens.

Each door is a route table with a mandatory `auth` column and thin handlers; decisions are elsewhere. `http/` holds what all doors
share: requests with limits, answers, the listener with its certificates. `api/` is the Kubernetes API of embedded mode.
"""
