"""Printers of the kinds of Kubernetes itself, one small function each.

    access.py     Printers of who may do what, and of the small kinds that steer the API: leases, classes, webhooks, policies
    core.py       Printers of the core group: nodes, namespaces, data, quotas, events
    network.py    Printers of how traffic finds pods: services, endpoints, ingresses, network policies
    pods.py       How a pod prints: its status is a judgement over all its containers
    reading.py    Reading parts of raw objects without tripping: a part that is missing or of another type is empty
    storage.py    Printers of volumes, claims and storage classes
    table.py      Which native kind prints how
    workloads.py  Printers of what runs pods: deployments and their relatives, jobs, disruption budgets

A real API server prints these kinds with code, not with JSONPath: a pod's status is a judgement over its containers, a node's
roles come from its labels. Every module here lists its functions in `CELLS`, by (group, kind); a native kind without an
entry prints name and creation time, as an API server does for a kind that has no printer.
"""

from fastness.apiserver.tables.native.table import CELLS, native_printer

__all__ = ["CELLS", "native_printer"]
