"""KataConfig: which nodes get the runtime, how it gets there, what is made of it, and what is told.

    inputs.py         What the state machine looks at, the operator included, and what it may ask for
    plan.py           The state machine of a KataConfig: what is there in, what is to be done out
    mode.py           How the runtime gets onto nodes, and whether it may: gates, mode, releases
    machineconfig.py  Installing through machine configs: a config with the extension, and a pool
    daemonset.py      Installing through a DaemonSet, where no machine configs are
    eligibility.py    Which nodes get the runtime, and why the others do not
    classes.py        The runtime classes that follow from a KataConfig, as one table
    objects.py        The objects that an installation makes, as manifests, and the copy of the dashboard
    peer_pods.py      Pods that run as virtual machines beside their node: what `enablePeerPods` brings
    status.py         The status of a KataConfig, in the words of the manual: lists of nodes, conditions
    errors.py         Why an installation does not go on

Everything is a pure function. `workloads/loops/kata` looks, asks `plan`, and does what it says; the page and `fastness
doctor` ask the same functions for reasons.
"""
