"""Printers of the kinds of Kubernetes itself, one small function each.

A real API server prints these kinds with code, not with JSONPath: a pod's status is a judgement over its containers, a node's
roles come from its labels. Every module here lists its functions in `CELLS`, by (group, kind); a native kind without an
entry prints name and creation time, as an API server does for a kind that has no printer.
"""

from fastness.apiserver.tables.native.table import CELLS, native_printer

__all__ = ["CELLS", "native_printer"]
