"""KataConfig: which nodes get the runtime, how it gets there, what is made of it, and what is told.

    inputs.py         What the state machine looks at, and what it may ask for
    plan.py           The state machine of a KataConfig: what is there in, what is to be done out
    mode.py           How the runtime gets onto nodes
    installer.py      The two ways of bringing nodes there, as the state machine sees them
    machineconfig.py  Installing through machine configs: a config with the extension, and a pool
    daemonset.py      Installing through a DaemonSet, where no machine configs are
    eligibility.py    Which nodes get the runtime, and why the others do not
    classes.py        The runtime classes that follow from a KataConfig, as one table
    objects.py        The objects that an installation makes, as manifests
    progress.py       Where every node is on its way: the lists of a KataConfig's status
    status.py         The status of a KataConfig, in the words of the manual
    dashboard.py      The dashboard of sandboxed containers, where the console looks for dashboards
    errors.py         Why an installation does not go on
    gates.py          The feature gates: a ConfigMap with five keys, read forgivingly
    operator.py       Whether the operator of sandboxed containers is there: what was removed must not go on working
    peer_pods.py      Pods that run as virtual machines beside their node: what `enablePeerPods` brings
    version.py        Which releases of the platform can host confidential containers on bare metal

Everything is a pure function. `workloads/loops/kata` looks, asks `plan`, and does what it says; the page and `fastness
doctor` ask the same functions for reasons.
"""
