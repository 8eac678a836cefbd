"""What the cluster says of itself.

alarms.py          What a cluster must say of its own verifier
cluster.py         How a confidential cluster stands, as its status tells it
collateral.py      What doors know about vendors' documents, and what the cluster says about it
first_cluster.py   What an installation asks for: a ConfidentialCluster that is made once
policy_bounds.py   Whether a policy of a user kept its bounds in service
unproved_nodes.py  Nodes of confidential pools that never proved anything
"""
