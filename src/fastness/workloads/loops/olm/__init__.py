"""The loops that install operators: catalogs, Subscriptions, InstallPlans, ClusterServiceVersions.

    catalogs.py         The catalogs that Subscriptions name: they are there, and say that they can be read
    controllers.py      All loops that install operators, ready to run
    other_operators.py  Whether a cluster has its own Operator Lifecycle Manager
    related_keys.py     Which keys a change concerns: operators of one namespace look at each other
    subscriptions.py    Subscriptions: what each gets next, as a plan, and what its status tells
    versions.py         InstallPlans are carried out; ClusterServiceVersions go through their phases

What they decide is in `workloads/olm`. Where a cluster has its own OLM they do not start (`other_operators`).
"""
