"""Admission: may this write happen, as it is?

`review(request, lookups)` runs the rules of a table, in order, over one write: `Allowed`, `Denied` or `Patched`. It is a pure
function, so it sits in the embedded API in process and behind a webhook on Kubernetes without a change.

`request.py` has the nouns, `review.py` the function and the table, and one module per family of rules: `namespaces.py`,
`rbac.py` (escalation, node restriction), `confidential.py` and `policies.py` (our own kinds), `machineconfig.py`,
`runtimeclass.py` and `workloads.py` (what a namespace asks of confidential pods).
"""

from fastness.domain.admission.request import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Denied,
    DeniedCause,
    Operation,
    Patched,
)
from fastness.domain.admission.review import review

__all__ = [
    "AdmissionLookups",
    "AdmissionRequest",
    "Allowed",
    "Denied",
    "DeniedCause",
    "Operation",
    "Patched",
    "review",
]
