"""Loops for confidential containers: what nodes can do, and what is installed on them.

features.py         What nodes can do, on the Nodes
kata/               KataConfig: the loop that installs the runtime for confidential containers
olm/                The loops that install operators: catalogs, Subscriptions, InstallPlans, ClusterServiceVersions
other_operators.py  Whether somebody else discovers features, or installs the runtime for confidential containers
"""
