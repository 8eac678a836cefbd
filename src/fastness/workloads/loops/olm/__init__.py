"""The loops that install operators: catalogs, Subscriptions, InstallPlans, ClusterServiceVersions.

    catalogs.py       The catalogs that Subscriptions name: they are there, and say that they can be read
    subscriptions.py  Subscriptions: what each gets next, as a plan, and what its status tells
    versions.py       InstallPlans are carried out; ClusterServiceVersions go through their phases

What they decide is in `workloads/olm`. Where a cluster has its own OLM they do not start (`workloads/loops/other_operators.py`).
"""
