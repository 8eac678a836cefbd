"""How operators are chosen, planned and installed: what OLM decides, as functions.

    catalog.py  The packages that can be subscribed to: operators whose work this control plane does itself
    phases.py   How far a ClusterServiceVersion is, and what holds it up
    plans.py    What an InstallPlan does, and when it may
    resolve.py  What a Subscription should get next

    Subscription ─ resolve ─ InstallPlan ─ plan ─ ClusterServiceVersion ─ phases ─ Succeeded

The operators of the manuals that Fastness stands in for are its own loops: "installed" means that their definitions are served
and that the namespace has exactly one OperatorGroup which fits. Nothing here starts a container, and nothing pretends to.
"""
