"""Verbs about the configuration of machines.

machineconfig.py  `fastness validate`, `render`, `blame` and `plan`: machine configuration before and after it is applied
offline.py        The objects that a plan is made from: out of manifests, or asked of a cluster
overlays.py       What `fastness plan` and `fastness blame` say about NodeOverlays
plan_view.py      A plan for people: per pool what changes, per node what happens, and what would go wrong
"""
