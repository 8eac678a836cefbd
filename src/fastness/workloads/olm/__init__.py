"""How operators are chosen, planned and installed: what OLM decides, as functions.

    Subscription ─ resolve ─ InstallPlan ─ plan ─ ClusterServiceVersion ─ phases ─ Succeeded

The operators of the manuals that Fastness stands in for are its own loops: "installed" means that their definitions are served
and that the namespace has exactly one OperatorGroup which fits. Nothing here starts a container, and nothing pretends to.
"""
