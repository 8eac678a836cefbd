"""`trusted-execution-clusters.io/v1alpha1`: which machines and images a confidential cluster trusts.

    approvals.py   ApprovedImage and AttestationKey: what somebody vouched for
    cluster.py     TrustedExecutionCluster: where the machines of a cluster find those that attest them
    disks.py       Encrypted volumes of a Machine: what is recorded, accepted, in doubt, and what approvers had
    machine.py     Machine: one machine that enrolled, and what it has proved since
    membership.py  Whether a machine may take part in the cluster, as its Machine says
    properties.py  Names of attested properties that a Machine carries (`status.properties`)
    subject.py     Who was proved, and what may therefore leave

All kinds are namespaced. What a person or an enrolment states is immutable; what was found out about it is in the status.
"""

GROUP = "trusted-execution-clusters.io"
VERSION = "v1alpha1"
