"""Admission: may this write happen, as it is?

`RuleTable.review(request, lookups)` runs rules, in order, over one write: `Allowed`, `Denied` or `Patched`. It is a pure
function, so it sits in the embedded API in process and behind a webhook on Kubernetes without a change.

`kube.admission` has the nouns, `kube.admission_rules` what runs a table; `table.py` is the table of the product, and
`apiserver.admission.own` that of an API server. The rules are in the rooms that they are about, one module per family:
`apiserver.admission` (namespaces; escalation and node restriction), `attestation.admission` (our own kinds),
`machineconfig.admission`, and `workloads.admission` (what a namespace asks of confidential pods).

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
