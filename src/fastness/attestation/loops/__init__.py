"""Loops of attestation: what is kept of proofs, and what becomes of machines that lose theirs.

approvers.py          Who counts as an approver of overrides: appointments, announced before they take effect
built_images.py       Images that were built here: on the record, and approved where a standing approval says so
challenges.py         Spent challenges are swept when they cannot be replayed any more
confidential.py       The status of the ConfidentialCluster: counts of machines, and conditions that tell the truth
disk_recovery.py      Two approvers have the key of a disk; runs with the broker, which has the vault
distrust.py           Distrusts: whom each one hits is counted, and the machines say so
door_certificates.py  Issues certificates to the doors, each role's into that role's own Secret
first_cluster.py      Makes the ConfidentialCluster that an installation asked for, once, when its guard can see it
guarding.py           Whether protection is lowered only by people who said so
image_values.py       Images are read from their registries, and what machines will measure is noted on their sets
images.py             ApprovedImages: an approval makes values count, and its end takes them away
legacy_certificates.py  Issues the certificates under which the gate answers stubs of an older installer
policies.py           AppraisalPolicies: tried before they judge
proof_age.py          Staying attested: a machine whose proof is missed or failed loses its place on its node, step by step
retention.py          Verdicts and evidence that are no longer needed are deleted
retirement.py         The life of images: who needs which, remembered on their ReferenceValueSets
statuses.py           Statuses of Machines that nobody of the control plane wrote: told, recorded, and put back
values.py             ReferenceValueSets: whether they count, how many values they have
"""
