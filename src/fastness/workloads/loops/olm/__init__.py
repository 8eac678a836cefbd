"""The loops that install operators: catalogs, Subscriptions, InstallPlans, ClusterServiceVersions.

What they decide is in `workloads/olm`. Where a cluster has its own OLM they do not start (`other_operators.py`).
"""
