"""KataConfig: which nodes get the runtime, how it gets there, what is made of it, and what is told.

    gates.py         the feature-gate ConfigMap, read forgivingly
    mode.py          MachineConfig or DaemonSet, and whether it may change now
    eligibility.py   which nodes are chosen, and why the others are not; which kinds of TEE are there
    classes.py       the runtime classes that follow, with handlers, overhead and selectors
    progress.py      where every node is: the lists of the status
    status.py        the status as it is written, conditions in the words of the manual
    objects.py       the objects that are made
    world.py         what is looked at, what is to be done
    plan.py          the state machine: what is there in, what is to be done out

Everything is a pure function. `workloads/loops/kata` looks, asks `plan`, and does what it says; the page and `fastness
doctor` ask the same functions for reasons.
"""
