"""Loops about machines that join.

join_tokens.py           Bootstrap tokens of joining machines: let in, published, taken back
kubelet_certificates.py  Attested join: kubelets get their certificates when, and only when, their machine has proved itself
machines.py              Machines after enrolment: decisions go on the record, replaced ones are revoked
trusted_cluster.py       TrustedExecutionCluster and AttestationKey
"""
