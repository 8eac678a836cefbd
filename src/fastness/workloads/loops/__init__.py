"""Loops for confidential containers: what nodes can do, and what is installed on them.

controllers.py      All loops for confidential containers, ready to run
features.py         What nodes can do, on the Nodes
kata/               KataConfig: the loop that installs the runtime for confidential containers
olm/                The loops that install operators: catalogs, Subscriptions, InstallPlans, ClusterServiceVersions
other_operators.py  Whether somebody else discovers features, installs the runtime, or installs operators
"""
