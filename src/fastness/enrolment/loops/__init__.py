"""Loops about machines that join.

joined_nodes.py          Nodes that came by the token of a pool: their Node is noted, and their name set free when it goes
pool_tokens.py           Bootstrap tokens of pools that do not attest: published, counted, taken back
unattested_joins.py      Joining without a proof: each name goes to one machine, each token to one node
join_tokens.py           Bootstrap tokens of joining machines: let in, published, taken back
kubelet_certificates.py  Attested join: kubelets get their certificates when, and only when, their machine has proved itself
machines.py              Machines after enrolment: decisions go on the record, replaced ones are revoked
trusted_cluster.py       TrustedExecutionCluster and AttestationKey
"""
