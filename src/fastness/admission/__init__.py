"""Admission: may this write happen, as it is?

`RuleTable.review(request, lookups)` runs rules, in order, over one write: `Allowed`, `Denied` or `Patched`. It is a pure
function, so it sits in the embedded API in process and behind a webhook on Kubernetes without a change.

`request.py` has the nouns, `rules.py` what runs a table, `own.py` and `review.py` the tables of an API server and of the product.
There is one module per family of rules: `namespaces.py`, `rbac.py` (escalation, node restriction), `confidential.py` and
`policies.py` (our own kinds), `machineconfig.py`, `runtimeclass.py` and `workloads.py` (what a namespace asks of confidential
pods).
"""

from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Denied, DeniedCause, Operation, Patched

__all__ = [
    "AdmissionLookups",
    "AdmissionRequest",
    "Allowed",
    "Denied",
    "DeniedCause",
    "Operation",
    "Patched",
]
