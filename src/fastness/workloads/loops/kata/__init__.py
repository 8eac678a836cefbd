"""KataConfig: the loop that installs the runtime for confidential containers.

`look.py` takes everything that a decision depends on out of the cluster, `workloads.kata.plan` decides, `act.py` does
it, and `loop.py` holds the three together and tells the status.
"""
