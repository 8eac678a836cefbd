"""Admission: may this write happen, as it is? The product's table of rules, and the webhook that asks it.

    door/     Admission on a real Kubernetes: the same rules as in the embedded API, behind a validating webhook
    not_acted_on.py  Whoever writes what nothing acts on reads so at once
    table.py  The table of the product's admission rules

`kube/admission.py` has the nouns, `kube/admission_rules.py` what runs a table over one write: `Allowed`, `Denied` or `Patched`.
Each room has the rules about its own objects in its package `admission`; here they become one table. It is a pure function, so
it sits in the embedded API in process and behind a webhook on Kubernetes without a change.
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
